// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/contraction.h"

#include <bit>

namespace einc {
namespace {

// Axes of the index of the last store: the innermost of the result's loops is where that has unit stride.
int64_t store_stride(const Kernel& kernel, AxisId axis) {
  for (const Stage& stage : kernel.stages)
    for (const Store& s : stage.stores)
      if (const int64_t c = s.index.affine.coefficient(axis)) return c;
  return 0;
}

}  // namespace

void find_contraction(Kernel& kernel) {
  if (kernel.reductions.size() != 1 || kernel.stages.size() != 2 || kernel.sequence) return;
  const Accumulation& r = kernel.reductions[0];
  const Scalar& product = kernel.values[r.value];
  if (r.fold != Fold::sum || product.kind != ScalarKind::map || product.fn != MapFn::mul) return;
  if (!kernel.stages[1].axes.empty() || !kernel.stages[0].stores.empty() || kernel.stages[0].ordered) return;
  const std::vector<uint64_t> axes = axes_of_values(kernel);
  Contraction c{0, product.operands[0], product.operands[1], {}, {}, {}, kernel.stages[0].axes};
  const uint64_t depth = bits(c.depth);
  if ((axes[c.left] & depth) != depth || (axes[c.right] & depth) != depth) return;
  uint64_t left = axes[c.left] & ~depth, right = axes[c.right] & ~depth;
  if ((left | right) != bits(kernel.outer)) return;
  // Columns are where the result's elements lie next to each other.
  const auto innermost = [&](uint64_t own) {
    int64_t best = INT64_MAX;
    for (AxisId a : kernel.outer)
      if (own >> a & 1)
        if (const int64_t stride = std::abs(store_stride(kernel, a)); stride != 0 && stride < best) best = stride;
    return best;
  };
  if (innermost(left & ~right) < innermost(right & ~left)) {
    std::swap(left, right);
    std::swap(c.left, c.right);
  }
  for (AxisId a : kernel.outer) {
    const bool in_left = left >> a & 1, in_right = right >> a & 1;
    (in_left && in_right ? c.batch : in_left ? c.rows : c.columns).push_back(a);
  }
  kernel.contraction = std::move(c);
}

}  // namespace einc
