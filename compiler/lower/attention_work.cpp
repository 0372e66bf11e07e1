// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/lower/attention.h"

namespace einc {
namespace {

class AttentionWorkCounter {
 public:
  explicit AttentionWorkCounter(const Kernel& kernel) : kernel_(kernel), a_(*kernel.attention), axes_(axes_of_values(kernel)) {}

  KernelCount run() {
    pairs_ = pairs_made(kernel_);
    rows_ = kernel_.extent(a_.row) * turns();
    for (const AttentionLoop& loop : schedule_attention(kernel_).loops) {
      work_.reduction += static_cast<int64_t>(loop.folds.size()) * pairs_;
      count_values(loop.made, [&](uint64_t axes) { return axes >> a_.key & 1 ? pairs_ : axes >> a_.row & 1 ? rows_ : turns(); });
    }
    for (const AttentionStep& step : a_.steps) count(step);
    std::vector<BufferTraffic> traffic;
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) traffic.push_back(traffic_of(b));
    return {work_, std::move(traffic)};
  }

 private:
  int64_t turns() const { return trips(kernel_, bits(a_.batch) | bits(a_.turns)); }

  void count(const AttentionStep& step) {
    if (step.part == AttentionPart::scores) {
      work_.contraction += 2 * pairs_ * trips(kernel_, bits(step.over));
      count_operand(step.left), count_operand(step.right);
    } else if (step.part != AttentionPart::fold) {
      work_.contraction += 2 * pairs_ * trips(kernel_, bits(step.free));
      count_operand(step.right);
    }
    // What is made of a result where it is stored.
    std::vector<bool> needed(kernel_.values.size(), false);
    for (const Store& s : step.stores) needed[s.value] = true;
    for (size_t i = needed.size(); i-- > 0;)
      if (needed[i] && kernel_.values[i].kind != ScalarKind::reduction)
        for (ValueId x : kernel_.values[i].operands) needed[x] = true;
    count_values(needed, [&](uint64_t axes) { return trips(kernel_, axes); });
  }

  // Made once for each of its elements.
  void count_operand(ValueId id) {
    std::vector<bool> needed(kernel_.values.size(), false);
    needed[id] = true;
    for (size_t i = id + 1; i-- > 0;)
      if (needed[i])
        for (ValueId x : kernel_.values[i].operands) needed[x] = true;
    if (!(axes_[id] >> a_.key & 1) || !(axes_[id] >> a_.row & 1)) count_values(needed, [&](uint64_t axes) { return trips(kernel_, axes); });
  }

  void count_values(const std::vector<bool>& needed, const auto& times) {
    for (size_t i = 0; i < needed.size(); ++i)
      if (const Scalar& v = kernel_.values[i]; needed[i] && v.kind == ScalarKind::map) {
        const int64_t n = times(axes_[i]);
        work_.elementwise += n;
        if (is_transcendental(v.fn)) work_.transcendental += n;
      }
  }

  BufferTraffic traffic_of(size_t b) const {
    const BufferUse& use = kernel_.buffers[b];
    BufferTraffic traffic;
    int64_t touched = 0;
    for (size_t i = 0; i < kernel_.values.size(); ++i)
      if (kernel_.values[i].kind == ScalarKind::load && kernel_.values[i].slot == b) touched += trips(kernel_, axes_[i]);
    if (use.access != BufferAccess::write) traffic.read = std::min(touched, use.count) * bytes_of(use.dtype);
    if (use.access != BufferAccess::read) traffic.written = use.count * bytes_of(use.dtype);
    return traffic;
  }

  const Kernel& kernel_;
  const Attention& a_;
  const std::vector<uint64_t> axes_;
  int64_t pairs_ = 0, rows_ = 0;
  KernelWork work_;
};

}  // namespace

KernelCount count_attention(const Kernel& kernel) { return AttentionWorkCounter(kernel).run(); }

}  // namespace einc
