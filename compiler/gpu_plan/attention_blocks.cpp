// SPDX-License-Identifier: Apache-2.0
#include "compiler/gpu_plan/attention_blocks.h"

#include <algorithm>

namespace einc {
namespace {

constexpr int64_t kMostRows = 16, kFewestRows = 4;
constexpr int64_t kBlocksTogether = 2;        // on a processor
constexpr int64_t kMostTileBytes = 96 << 10;  // of a block; no more rows a block from there on

int64_t align(int64_t bytes) { return (bytes + 15) / 16 * 16; }

}  // namespace

AttentionBlocks plan_attention_blocks(const Kernel& kernel, const GpuShape& gpu) {
  const Attention& a = *kernel.attention;
  AttentionBlocks p;
  p.schedule = schedule_attention(kernel);
  const int64_t keys = kernel.extent(a.key), rows = kernel.extent(a.row);
  const int64_t row_bytes = std::max(p.schedule.tiles, 1) * keys * 4;
  const int64_t folds = std::ranges::count(a.steps, AttentionPart::fold, &AttentionStep::part);
  const int64_t room = gpu.shared_bytes_of(kBlocksTogether) - align(folds * kMostRows * 4);
  p.rows = std::min({kMostRows, rows, std::min(kMostTileBytes, room) / row_bytes});
  p.tiles_shared = p.rows >= std::min(kFewestRows, rows);
  if (!p.tiles_shared) p.rows = std::min(kMostRows, rows);
  p.row_blocks = (rows + p.rows - 1) / p.rows;
  for (AxisId b : a.batch) p.batches *= kernel.extent(b);
  for (const AttentionStep& step : a.steps) {
    if (step.part != AttentionPart::gather) continue;
    p.gathers = true;
    p.sum_bytes += keys * trips(kernel, bits(step.free)) * 4;
  }
  p.fold_bytes = align(folds * p.rows * 4);
  p.tile_bytes = align(p.rows * row_bytes);
  p.sum_bytes = align(p.sum_bytes);
  return p;
}

}  // namespace einc
