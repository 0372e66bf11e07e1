// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "compiler/lower/attention.h"

namespace einc {
namespace {

class KernelVerifier {
 public:
  explicit KernelVerifier(const Kernel& kernel) : kernel_(kernel) {}

  std::string run() {
    if (kernel_.axes.size() > 64) return "more than 64 axes";
    for (ValueId i = 0; i < kernel_.values.size() && problem_.empty(); ++i) check_value(i);
    if (!problem_.empty()) return problem_;
    if (kernel_.attention) return verify_attention(kernel_);
    axes_ = axes_of_values(kernel_);
    needs_ = reductions_of_values(kernel_);
    for (const Stage& stage : kernel_.stages) check_stage(stage);
    if (kernel_.contraction)
      for (const PaddedAxis& axis : kernel_.contraction->padded) check_padded(axis);
    return problem_;
  }

 private:
  void fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  void check_index(const Subscript& index, ValueId limit) {
    for (const Affine::Term& t : index.affine.terms)
      if (t.axis >= kernel_.axes.size()) fail(fmt::format("axis a{} does not exist", t.axis));
    for (const Subscript::Dynamic& d : index.dynamic)
      if (d.value >= limit) fail(fmt::format("v{} is used before it is made", d.value));
  }

  // Rows and depths are whole lines of places and elements.
  void check_padded(const PaddedAxis& axis) {
    const int64_t rows = trips(kernel_, bits(kernel_.contraction->rows)), depths = trips(kernel_, bits(kernel_.contraction->depth));
    const bool some = std::min({axis.row_apart, axis.places, axis.depth_apart, axis.elements, axis.step, axis.dilation, axis.size}) > 0;
    if (!some || rows % axis.row_apart != 0 || rows / axis.row_apart % axis.places != 0 || depths % axis.depth_apart != 0 ||
        depths / axis.depth_apart % axis.elements != 0)
      fail("a padded axis that rows and depths have no places of");
  }

  void check_value(ValueId i) {
    const Scalar& v = kernel_.values[i];
    for (ValueId x : v.operands)
      if (x >= i) fail(fmt::format("v{} uses v{}", i, x));
    check_index(v.index, i);
    for (const Range& g : v.guards) check_index(g.index, i);
    if (v.kind == ScalarKind::load && v.slot >= kernel_.buffers.size()) fail(fmt::format("v{} reads buffer b{}", i, v.slot));
    const bool reduction = v.kind == ScalarKind::reduction || v.kind == ScalarKind::running;
    if (reduction && (v.slot >= kernel_.reductions.size() || kernel_.reductions[v.slot].value >= i))
      fail(fmt::format("v{} uses reduction r{}", i, v.slot));
    if (v.kind == ScalarKind::map && static_cast<int>(v.operands.size()) != arity_of(v.fn))
      fail(fmt::format("v{} has {} operands", i, v.operands.size()));
  }

  void check_stage(const Stage& stage) {
    const uint64_t scope = bits(kernel_.outer) | bits(stage.axes) | (kernel_.sequence ? bit(*kernel_.sequence) : 0);
    auto check_scope = [&](uint64_t used, const char* what) {
      if (used & ~scope) fail(fmt::format("a {} depends on axes outside its loops", what));
    };
    for (uint16_t r : stage.reductions) {
      check_scope(axes_[kernel_.reductions[r].value], "reduced value");
      check_ready(kernel_.reductions[r].value);
    }
    for (uint16_t r : stage.reductions) ready_ |= uint64_t{1} << r;
    for (const Store& s : stage.stores) {
      if (s.buffer >= kernel_.buffers.size()) fail(fmt::format("a store into buffer b{}", s.buffer));
      check_scope(axes_[s.value], "stored value");
      check_ready(s.value);
      check_index(s.index, static_cast<ValueId>(kernel_.values.size()));
      uint64_t used = 0;
      for (const Affine::Term& t : s.index.affine.terms) used |= bit(t.axis);
      if (s.mode == StoreMode::sum)
        check_sum(stage, used);
      else
        check_scope(used, "store's index");
    }
  }

  void check_sum(const Stage& stage, uint64_t used) {
    if (!kernel_.part)
      fail("a sum over points of no part");
    else if (used & ~(bits(stage.axes) | bit(*kernel_.part)))
      fail("a sum's place depends on the points that it is over");
  }

  // Every reduction that a value needs comes from an earlier stage (running values belong to ordered stages).
  void check_ready(ValueId id) {
    if (needs_[id] & ~ready_) fail(fmt::format("v{} needs a reduction before it is ready", id));
  }

  const Kernel& kernel_;
  std::vector<uint64_t> axes_;
  std::vector<uint64_t> needs_;
  uint64_t ready_ = 0;
  std::string problem_;
};

}  // namespace

std::string verify(const Kernel& kernel) { return KernelVerifier(kernel).run(); }

}  // namespace einc
