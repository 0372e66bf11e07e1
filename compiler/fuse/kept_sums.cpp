// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/kept_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runtime/base/dtype.h"

namespace einc {
namespace {

// Elements: several vectors of any processor. Below it the loop plan may run the lanes along another axis, by what else the kernel reads
// and stores (found on the zoo's small models: perceiver and t5 lost their bits).
constexpr int64_t kLongLoop = 64;

bool is_short(const Kernel& kernel, const std::vector<AxisId>& axes) { return trips(kernel, bits(axes)) < kLongLoop; }

bool follows_from_loops(const Kernel& kernel) {
  if (kernel.attention) return false;
  if (const auto& c = kernel.contraction) return !is_short(kernel, c->rows) && !is_short(kernel, c->columns) && !is_short(kernel, c->depth);
  return std::ranges::none_of(kernel.stages, [&](const Stage& s) { return !s.reductions.empty() && is_short(kernel, s.axes); });
}

std::string loops(const Kernel& kernel, const std::vector<AxisId>& axes) {
  std::string text;
  for (AxisId a : axes) text += fmt::format(" {}", kernel.extent(a));
  return text;
}

// Of f32, and of what is narrower and held in it, max and min on a GPU are the same in any order: also of zeros, since max.NaN.f32 has
// +0 > -0 (PTX ISA), and of what is no number. Those of f64 compare, and keep the first of two zeros.
bool is_extreme(const Accumulation& a) { return (a.fold == Fold::max || a.fold == Fold::min) && a.dtype != DType::f64; }
bool adds_up(const Store& store) { return store.mode == StoreMode::add || store.mode == StoreMode::sum; }

bool has_extremes_alone(const Kernel& kernel) {
  return std::ranges::all_of(kernel.reductions, is_extreme) &&
         std::ranges::none_of(kernel.stages, [](const Stage& s) { return std::ranges::any_of(s.stores, adds_up); });
}

std::vector<std::string> sums_of(const Kernel& kernel, SumOrder order) {
  if (kernel.reductions.empty() || (order == SumOrder::of_kernel && has_extremes_alone(kernel))) return {};
  if (order == SumOrder::of_kernel || !follows_from_loops(kernel)) return {to_string(kernel)};
  const std::string kind = kernel.contraction ? "product" : kernel.part ? "parts" : kernel.sequence ? "sequence" : "";
  std::vector<std::string> sums;
  for (const Stage& stage : kernel.stages)
    for (uint16_t r : stage.reductions) {
      const Accumulation& sum = kernel.reductions[r];
      sums.push_back(fmt::format("{}{} of{}: {} {}", kind, loops(kernel, kernel.outer), loops(kernel, stage.axes),
                                 static_cast<int>(sum.fold), to_string(sum.dtype)));
    }
  return sums;
}

}  // namespace

KeptSums::KeptSums(const KernelList& list, SumOrder order) : order_(order) {
  for (const GraphKernel& k : list.kernels)
    for (const std::string& sum : sums_of(*k.kernel, order)) ++times_[sum];
}

bool KeptSums::are_in(const KernelList& list) const {
  const KeptSums other(list, order_);
  const bool all = std::ranges::all_of(times_, [&](const auto& sum) {
    const auto found = other.times_.find(sum.first);
    return found != other.times_.end() && found->second >= sum.second;
  });
  if (!all || order_ == SumOrder::of_loops) return all;
  return std::ranges::all_of(other.times_, [&](const auto& sum) { return times_.contains(sum.first); });
}

}  // namespace einc
