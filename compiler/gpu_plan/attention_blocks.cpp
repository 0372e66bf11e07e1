// SPDX-License-Identifier: Apache-2.0
#include "compiler/gpu_plan/attention_blocks.h"

#include <algorithm>

#include "runtime/base/round_up.h"

namespace einc {
namespace {

constexpr int64_t kMostRows = 16, kFewestBlockRows = 4;
constexpr int64_t kBlocksTogether = 2;        // on a processor
constexpr int64_t kMostTileBytes = 96 << 10;  // of a block; no more rows a block from there on
constexpr int64_t kKeyStep = 32;              // keys of a block are a multiple: lanes of a warp read neighbours

int64_t align(int64_t bytes) { return (bytes + 15) / 16 * 16; }

// Sums over rows alone: no block needs what another makes of its keys.
bool divides_keys(const Attention& a) {
  return std::ranges::all_of(a.steps,
                             [](const AttentionStep& s) { return s.part == AttentionPart::scores || s.part == AttentionPart::gather; });
}

// As many keys as leave every processor its blocks, if there are so many.
int64_t keys_of_a_block(int64_t keys, int64_t batches, const GpuShape& gpu) {
  const int64_t key_blocks = divide_up(kBlocksTogether * gpu.processors, batches);
  return std::min(keys, std::max(keys / key_blocks / kKeyStep, int64_t{1}) * kKeyStep);
}

}  // namespace

AttentionBlocks plan_attention_blocks(const Kernel& kernel, const GpuShape& gpu) {
  const Attention& a = *kernel.attention;
  AttentionBlocks p;
  p.schedule = schedule_attention(kernel);
  const int64_t keys = kernel.extent(a.key), rows = kernel.extent(a.row);
  for (AxisId b : a.batch) p.batches *= kernel.extent(b);
  p.gathers = std::ranges::count(a.steps, AttentionPart::gather, &AttentionStep::part) > 0;
  p.keys = p.gathers && divides_keys(a) && p.batches < kBlocksTogether * gpu.processors ? keys_of_a_block(keys, p.batches, gpu) : keys;
  p.key_blocks = divide_up(keys, p.keys);
  const int64_t row_bytes = std::max(p.schedule.tiles, 1) * p.keys * 4;
  const int64_t folds = std::ranges::count(a.steps, AttentionPart::fold, &AttentionStep::part);
  const int64_t room = gpu.shared_bytes_of(kBlocksTogether) - align(folds * kMostRows * 4);
  p.rows = std::min({kMostRows, rows, std::min(kMostTileBytes, room) / row_bytes});
  p.tiles_shared = p.rows >= std::min(kFewestBlockRows, rows);
  if (!p.tiles_shared) p.rows = std::min(kMostRows, rows);
  p.row_blocks = (rows + p.rows - 1) / p.rows;
  for (const AttentionStep& step : a.steps)
    if (step.part == AttentionPart::gather) p.sum_bytes += p.keys * trips(kernel, bits(step.free)) * 4;
  p.fold_bytes = align(folds * p.rows * 4);
  p.tile_bytes = align(p.rows * row_bytes);
  p.sum_bytes = align(p.sum_bytes);
  return p;
}

}  // namespace einc
