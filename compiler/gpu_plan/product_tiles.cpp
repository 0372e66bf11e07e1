// SPDX-License-Identifier: Apache-2.0
// Axes of rows, columns and depth become one axis each, whose order is free: the innermost is one along which an operand has 16 bytes side
// by side, so that they are one copy. The left operand chooses for the depth, the right one only where the left has not.
#include "compiler/gpu_plan/product_tiles.h"

#include <algorithm>

#include "compiler/gpu_plan/thread_plan.h"
#include "compiler/lower/flatten.h"

namespace einc {
namespace {

constexpr int64_t kSmallestSide = 8, kShortestDepth = 8, kLeastProductWork = 1 << 12;

class ProductPlanner {
 public:
  ProductPlanner(const Kernel& kernel, const GpuShape& gpu) : processors_(gpu.processors) { t_.kernel = kernel; }

  std::optional<ProductTiles> run(ProductSums f32_products) {
    if (!t_.kernel.contraction || t_.kernel.axes.size() + 3 > 64 || !find_dtype(f32_products)) return std::nullopt;
    Contraction& c = *t_.kernel.contraction;
    t_.left = lay(c.left, c.depth, c.rows, true);
    t_.right = lay(c.right, c.depth, c.columns, !t_.left.copied || !t_.left.by_depth);
    const FlatContraction flat = flatten_contraction(t_.kernel);
    t_.row = flat.row, t_.column = flat.column, t_.depth = flat.depth, t_.batches = flat.batches;
    const int64_t m = t_.kernel.extent(t_.row), n = t_.kernel.extent(t_.column), k = t_.kernel.extent(t_.depth);
    if (m < kSmallestSide || n < kSmallestSide || k < kShortestDepth || m * n * k < kLeastProductWork) return std::nullopt;
    choose_tile(m, n);
    return std::move(t_);
  }

 private:
  bool find_dtype(ProductSums f32_products) {
    const Contraction& c = *t_.kernel.contraction;
    const Accumulation& sum = t_.kernel.reductions[c.reduction];
    t_.dtype = t_.kernel.values[c.left].dtype;
    if (sum.dtype != DType::f32 || t_.kernel.values[sum.value].dtype != DType::f32) return false;
    if (t_.kernel.values[c.right].dtype != t_.dtype) return false;
    return t_.dtype == DType::bf16 || t_.dtype == DType::f16 || (t_.dtype == DType::f32 && f32_products == ProductSums::tf32);
  }

  // Where 16 bytes of an operand lie side by side along one of its axes, that one becomes the innermost of its loops.
  ProductTiles::Operand lay(ValueId operand, std::vector<AxisId>& depth, std::vector<AxisId>& own, bool moves_depth) const {
    const auto innermost = [&](std::vector<AxisId>& axes, bool moves) {
      const auto packed = std::ranges::find_if(axes, [&](AxisId a) { return is_copied(operand, a); });
      if (packed == axes.end() || (!moves && packed + 1 != axes.end())) return false;
      std::rotate(packed, packed + 1, axes.end());
      return true;
    };
    if (innermost(depth, moves_depth)) return {true, true};
    if (innermost(own, true)) return {false, true};
    return {std::ranges::any_of(depth, [&](AxisId a) { return lies_along(t_.kernel, operand, a); }), false};
  }

  bool is_copied(ValueId operand, AxisId axis) const {
    const Kernel& k = t_.kernel;
    const Scalar& v = k.values[operand];
    if (v.kind != ScalarKind::load || k.buffers[v.slot].dtype != t_.dtype || k.extent(axis) % t_.vector() != 0) return false;
    const auto alike = [&](const Range& g) { return g.index.affine.coefficient(axis) == 0 && is_place(g.index); };
    return is_place(v.index) && std::ranges::all_of(v.guards, alike) && packs(k, v.slot, v.index, axis, t_.vector());
  }
  // Known without a load.
  static bool is_place(const Subscript& index) { return index.dynamic.empty(); }

  // Large tiles read less; of what is small, tiles that are full and blocks for all processors count more.
  void choose_tile(int64_t m, int64_t n) {
    const auto padded = [](int64_t size, int64_t tile) { return (size + tile - 1) / tile * tile; };
    const auto wastes = [&](int64_t size, int64_t tile) { return 8 * padded(size, tile) > 9 * padded(size, tile / 2); };
    while (t_.columns > 16 && (n <= t_.columns / 2 || wastes(n, t_.columns))) t_.columns /= 2;
    if (wastes(m, t_.rows) || t_.blocks() < processors_) t_.rows /= 2;
    if (t_.columns == 128 && t_.blocks() < processors_) t_.columns /= 2;
  }

  const int64_t processors_;
  ProductTiles t_;
};

}  // namespace

std::optional<ProductTiles> tile_product(const Kernel& kernel, const GpuShape& gpu, ProductSums f32_products) {
  return ProductPlanner(kernel, gpu).run(f32_products);
}

}  // namespace einc
