// SPDX-License-Identifier: Apache-2.0
// An attention kernel of any form: a block of threads makes the scores of a few rows in tiles, folds them along the keys, and multiplies
// what it kept of them. Tiles lie in shared memory, or in global memory where they are too large. Where a kernel only sums over rows, a
// key's sums depend on no other key's: blocks then divide the keys, so that few heads keep a GPU busy, and the bits are those of one block.
#pragma once
#include "compiler/lower/attention.h"
#include "runtime/base/gpu_shape.h"

namespace einc {

struct AttentionBlocks {
  static constexpr int kThreads = 256;
  AttentionSchedule schedule;
  int64_t rows = 1;        // that a block holds at a time
  int64_t row_blocks = 1;  // of a batch point
  int64_t batches = 1;
  int64_t keys = 1;          // that a block takes
  int64_t key_blocks = 1;    // of a batch point
  bool gathers = false;      // then a block does all rows of a batch point, one range after another
  bool tiles_shared = true;  // tiles lie in shared memory, else in the block's slice of scratch memory
  int64_t tile_bytes = 0, fold_bytes = 0, sum_bytes = 0;

  int64_t blocks() const { return batches * (gathers ? key_blocks : row_blocks); }
  int64_t shared_bytes() const { return fold_bytes + (tiles_shared ? tile_bytes : 0); }
  int64_t slice_bytes() const { return sum_bytes + (tiles_shared ? 0 : tile_bytes); }
};

AttentionBlocks plan_attention_blocks(const Kernel& kernel, const GpuShape& gpu);

}  // namespace einc
