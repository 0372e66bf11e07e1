// SPDX-License-Identifier: Apache-2.0
// verify_overlap against an enumeration: every load and store of a small kernel, at every element, by address.
#include "compiler/lower/verify_overlap.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "compiler/fuse/form_graph.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/fuzz/random_program.h"
#include "tests/support/agree.h"

using namespace einc;

namespace {

// Where in a kernel's order an access lies: the outer point (and round of its sequence), the stage, the element of the stage.
struct Moment {
  int64_t point;
  size_t stage;
  int64_t element;
};

// All elements of buffer `read` that a stage loads, and of `written` that it stores, under one numbering of addresses.
class Enumeration {
 public:
  Enumeration(const Kernel& kernel, uint16_t read, uint16_t written) : kernel_(kernel), read_(read), written_(written) {}

  // Whether a load may come after a store of another value to one of its bytes.
  bool loses() {
    at_.assign(kernel_.axes.size(), 0);
    std::vector<AxisId> outer = kernel_.outer;
    visit(outer, [&](int64_t point) {
      for (size_t s = 0; s < kernel_.stages.size(); ++s) {
        const std::vector<bool> needed = needed_by(kernel_, kernel_.stages[s]);
        visit(kernel_.stages[s].axes, [&](int64_t element) {
          for (ValueId id = 0; id < kernel_.values.size(); ++id)
            if (needed[id] && kernel_.values[id].kind == ScalarKind::load && kernel_.values[id].slot == read_)
              touch(loads_, read_, kernel_.values[id].index, {point, s, element});
          for (const Store& store : kernel_.stages[s].stores)
            if (store.buffer == written_) touch(stores_, written_, store.index, {point, s, element});
        });
      }
    });
    for (const auto& [address, stores] : stores_)
      for (const Moment& store : stores)
        for (const Moment& load : loads_[address])
          if (load.point != store.point || load.stage > store.stage || (load.stage == store.stage && load.element != store.element))
            return true;
    return false;
  }

 private:
  void visit(const std::vector<AxisId>& axes, const std::function<void(int64_t)>& body, size_t level = 0, int64_t number = 0) {
    if (level == axes.size()) return body(number);
    for (int64_t i = 0; i < kernel_.extent(axes[level]); ++i) {
      at_[axes[level]] = i;
      visit(axes, body, level + 1, number * kernel_.extent(axes[level]) + i);
    }
    at_[axes[level]] = 0;
  }
  void touch(std::map<int64_t, std::vector<Moment>>& bytes, uint16_t buffer, const Subscript& index, Moment moment) const {
    int64_t element = index.affine.constant;
    for (const Affine::Term& t : index.affine.terms) element += t.coefficient * at_[t.axis];
    const int64_t size = bytes_of(kernel_.buffers[buffer].dtype);
    for (int64_t i = 0; i < size; ++i) bytes[element * size + i].push_back(moment);
  }

  const Kernel& kernel_;
  uint16_t read_, written_;
  std::vector<int64_t> at_;
  std::map<int64_t, std::vector<Moment>> loads_, stores_;
};

bool can_be_enumerated(const Kernel& kernel) {
  constexpr int64_t kMostPoints = 2048;
  if (kernel.attention || kernel.sequence || kernel.part) return false;
  int64_t points = 1;
  for (AxisId a = 0; a < kernel.axes.size(); ++a) points *= kernel.extent(a);
  if (points > kMostPoints) return false;
  for (const Stage& stage : kernel.stages)
    for (const Store& store : stage.stores)
      if (stage.ordered || store.mode != StoreMode::set || !store.index.dynamic.empty()) return false;
  return std::ranges::all_of(kernel.values, [](const Scalar& v) { return v.kind != ScalarKind::load || v.index.dynamic.empty(); });
}

struct Overlaps {
  int accepted = 0, refused = 0, lost = 0;
};

// Every pair of a read and a written buffer of one size, at one place.
void compare(const Kernel& kernel, Overlaps& counts) {
  if (!can_be_enumerated(kernel)) return;
  for (uint16_t r = 0; r < kernel.buffers.size(); ++r)
    for (uint16_t w = 0; w < kernel.buffers.size(); ++w) {
      const BufferUse &in = kernel.buffers[r], &out = kernel.buffers[w];
      if (in.access != BufferAccess::read || out.access != BufferAccess::write) continue;
      if (in.count * bytes_of(in.dtype) != out.count * bytes_of(out.dtype)) continue;
      std::vector<int64_t> offsets(kernel.buffers.size(), kNoPlace);
      offsets[r] = offsets[w] = 0;
      const bool accepted = verify_overlap(kernel, offsets).empty(), lost = Enumeration(kernel, r, w).loses();
      CAPTURE(to_string(kernel));
      CAPTURE(r);
      CAPTURE(w);
      CHECK_FALSE((accepted && lost));
      ++(accepted ? counts.accepted : counts.refused);
      counts.lost += lost;
    }
}

}  // namespace

TEST_CASE("an overlap that is accepted loses nothing") {
  Overlaps counts;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    std::string problem;
    const auto wanted = interpret_text(random_program(seed).text(), seed, problem);
    REQUIRE_MESSAGE(wanted, problem);
    const FormedGraph formed = form_graph(wanted->graph, {}, RunMode::training);
    for (const GraphKernel& k : formed.list.kernels) compare(*k.kernel, counts);
  }
  MESSAGE(fmt::format("{} overlaps accepted, {} refused, {} of them lose a value", counts.accepted, counts.refused, counts.lost));
  CHECK(counts.accepted > 100);
  CHECK(counts.lost > 100);
  CHECK(counts.refused - counts.lost < counts.accepted / 4);  // nearly all that is safe is known to be
}

TEST_CASE("buffers that overlap in part, or are both written, are refused") {
  Kernel kernel;
  kernel.axes = {{8, Name("i")}};
  kernel.outer = {0};
  kernel.buffers = {{DType::f32, BufferAccess::read, 8}, {DType::f32, BufferAccess::write, 8}, {DType::f32, BufferAccess::write, 8}};
  Scalar load;
  load.kind = ScalarKind::load, load.index = Affine::of_axis(0);
  kernel.values = {load};
  kernel.stages = {{{}, {}, {{1, Affine::of_axis(0), 0, StoreMode::set}, {2, Affine::of_axis(0), 0, StoreMode::set}}, false}};
  const auto problem = [&](std::vector<int64_t> offsets) { return verify_overlap(kernel, offsets); };
  CHECK(problem({0, 32, 64}) == "");
  CHECK(problem({0, 0, 64}) == "");
  CHECK(problem({0, 4, 64}) == "b1 overlaps b0: they begin at different places");
  CHECK(problem({0, 32, 60}) == "b1 overlaps b2: both are written");
  // Slices of one buffer: columns 0 to 3 of rows of 8, and the others.
  Kernel slices = kernel;
  slices.axes = {{3, Name("row")}, {4, Name("column")}}, slices.outer = {0, 1};
  slices.buffers = {{DType::f32, BufferAccess::read, 12}, {DType::f32, BufferAccess::write, 24}, {DType::f32, BufferAccess::write, 24}};
  const Affine row = Affine::of_axis(0, 8) + Affine::of_axis(1);
  slices.values[0].index = Affine::of_axis(0, 4) + Affine::of_axis(1);
  slices.stages[0].stores[0].index = slices.stages[0].stores[1].index = row;
  const std::vector<int64_t> together{0, 64, 64};
  CHECK(verify_overlap(slices, together) == "b1 overlaps b2: both are written");
  slices.stages[0].stores[1].index.affine.constant = 4;
  CHECK(verify_overlap(slices, together) == "");
  slices.stages[0].stores[1].index.affine.constant = 3;
  CHECK(verify_overlap(slices, together) == "b1 overlaps b2: both are written");
  slices.stages[0].stores[1].index.affine.constant = 20;
  CHECK(verify_overlap(slices, together) == "");  // behind all of the others
  kernel.stages[0].stores[0].index = kernel.stages[0].stores[0].index * -1;
  kernel.stages[0].stores[0].index.affine.constant = 7;
  CHECK(problem({0, 0, 64}) == "b1 overlaps b0: another element of the stage may be stored first");
  kernel.stages[0].stores[0].index = Subscript(Affine::of_axis(0));
  kernel.sequence = 0;
  CHECK(problem({0, 0, 64}) == "b1 overlaps b0: a later round reads what an earlier one has stored");
}
