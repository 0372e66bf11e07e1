// SPDX-License-Identifier: Apache-2.0
#include "compiler/gpu_plan/scatter_blocks.h"

#include <algorithm>

namespace einc {
namespace {

constexpr int64_t kFewPositions = 32;
constexpr int64_t kBlocksOfProcessor = 8;  // small ones, which it holds at once
constexpr int64_t kMostThreads = 1024;

}  // namespace

std::optional<ScatterBlocks> plan_scatter(const Kernel& kernel, const GpuShape& gpu) {
  if (kernel.sequence || kernel.stages.empty() || !kernel.reductions.empty()) return std::nullopt;
  ScatterBlocks p;
  p.stage = kernel.stages.size() - 1;
  const Stage& stage = kernel.stages.back();
  if (!stage.ordered || stage.stores.size() != 1) return std::nullopt;
  const Store& store = stage.stores[0];
  if (store.index.dynamic.size() != 1) return std::nullopt;
  p.position = store.index.dynamic[0].value;
  const Scalar& position = kernel.values[p.position];
  const std::vector<uint64_t> axes = axes_of_values(kernel);
  const uint64_t along = bits(stage.axes);
  if (position.kind != ScalarKind::checked || (axes[p.position] & ~along) != 0) return std::nullopt;
  for (AxisId a : stage.axes)
    if (store.index.affine.coefficient(a) != 0) return std::nullopt;
  p.table_rows = position.integer;
  for (size_t s = 0; s < p.stage; ++s) {
    const Stage& fill = kernel.stages[s];
    const bool rows = !fill.ordered && fill.axes.size() == 1 && kernel.extent(fill.axes[0]) == p.table_rows && fill.stores.size() == 1 &&
                      fill.stores[0].buffer == store.buffer && fill.stores[0].index.dynamic.empty() &&
                      fill.stores[0].index.affine.coefficient(fill.axes[0]) == store.index.dynamic[0].coefficient;
    if (!rows) return std::nullopt;
  }
  const std::vector<bool> needed = needed_by(kernel, stage);
  for (size_t i = 0; i < needed.size(); ++i)
    if (needed[i] && kernel.values[i].kind == ScalarKind::load && kernel.values[i].slot == store.buffer) return std::nullopt;
  for (AxisId a : stage.axes) p.positions *= kernel.extent(a);
  for (AxisId a : kernel.outer) p.points *= kernel.extent(a);
  if (p.positions < kFewPositions || p.positions > INT32_MAX / 2) return std::nullopt;
  p.threads = static_cast<int>(std::min(kMostThreads, (p.points + 31) / 32 * 32));
  p.chunks = (p.points + p.threads - 1) / p.threads;
  const int64_t wanted = kBlocksOfProcessor * gpu.processors;
  p.rows = std::max<int64_t>(1, (p.table_rows * p.chunks + wanted - 1) / wanted);
  return p;
}

}  // namespace einc
