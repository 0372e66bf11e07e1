// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/transposes.h"

#include <algorithm>

#include "runtime/base/dtype.h"

namespace einc {
namespace {

constexpr int64_t kAlong = 128, kAcross = 64, kLeast = 8;

int64_t largest_divisor(int64_t n, int64_t most) {
  int64_t d = std::min(n, most);
  while (n % d != 0) --d;
  return d;
}

// The axis that most of what a kernel loads lies along.
std::optional<AxisId> read_along(const Kernel& kernel) {
  std::optional<AxisId> best;
  int64_t most = 0;
  for (const Scalar& v : kernel.values) {
    if (v.kind != ScalarKind::load) continue;
    const int64_t bytes = kernel.buffers[v.slot].count * bytes_of(kernel.buffers[v.slot].dtype);
    for (AxisId a : kernel.outer)
      if (v.index.affine.coefficient(a) == 1 && bytes > most) best = a, most = bytes;
  }
  return best;
}

}  // namespace

std::optional<AxisId> transposed_axis(const Store& store, const std::vector<AxisId>& loops, AxisId along) {
  if (!store.index.dynamic.empty() || store.mode != StoreMode::set || std::abs(store.index.affine.coefficient(along)) <= 1)
    return std::nullopt;
  const auto across = std::find_if(loops.begin(), loops.end(), [&](AxisId a) { return store.index.affine.coefficient(a) == 1; });
  return across == loops.end() ? std::nullopt : std::optional(*across);
}

TransposeTile transpose_tile(const Kernel& kernel, TransposedAxes axes) {
  return {largest_divisor(kernel.extent(axes.along), kAlong), largest_divisor(kernel.extent(axes.across), kAcross)};
}

AxisId split_axis(Kernel& kernel, AxisId axis, int64_t outer) {
  const auto made = static_cast<AxisId>(kernel.axes.size());
  const int64_t inner = kernel.extent(axis) / outer;
  kernel.axes[axis].extent = inner;
  kernel.axes.push_back({outer, kernel.axes[axis].name});
  const auto rewrite = [&](Subscript& index) {
    index.affine = index.affine + Affine::of_axis(made, index.affine.coefficient(axis) * inner);
  };
  for (Scalar& v : kernel.values) {
    rewrite(v.index);
    for (Range& g : v.guards) rewrite(g.index);
  }
  for (Stage& stage : kernel.stages)
    for (Store& s : stage.stores) rewrite(s.index);
  return made;
}

std::optional<Kernel> tile_transposes(const Kernel& kernel) {
  const bool elementwise = kernel.stages.size() == 1 && kernel.stages[0].axes.empty() && !kernel.stages[0].ordered && !kernel.sequence &&
                           kernel.reductions.empty() && !kernel.contraction && !kernel.attention && kernel.axes.size() + 2 <= 64;
  const std::optional<AxisId> along = elementwise ? read_along(kernel) : std::nullopt;
  if (!along) return std::nullopt;
  for (const Store& s : kernel.stages[0].stores) {
    const std::optional<AxisId> across = transposed_axis(s, kernel.outer, *along);
    if (!across) continue;
    const TransposeTile tile = transpose_tile(kernel, {*along, *across});
    if (tile.along < kLeast || tile.across < kLeast) continue;
    Kernel tiled = kernel;
    std::erase_if(tiled.outer, [&](AxisId a) { return a == *along || a == *across; });
    for (const auto& [axis, inner] : {std::pair{*across, tile.across}, {*along, tile.along}})
      tiled.outer.push_back(split_axis(tiled, axis, kernel.extent(axis) / inner));
    tiled.stages[0].axes = {*across, *along};
    return tiled;
  }
  return std::nullopt;
}

}  // namespace einc
