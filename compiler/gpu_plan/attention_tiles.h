// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores, in the way of FlashAttention 2: a block keeps 64 or 128 rows (or keys, of a kernel that sums over rows), goes
// over tiles of the others, makes scores in registers, and multiplies what it makes of them at once. A maximum and the sum of exponentials
// that follows it are folded together, what was summed before scaled as the maximum grows. On a GPU that has wgmma four warps multiply
// their 64 rows together, straight from shared memory.
#pragma once
#include <optional>

#include "compiler/lower/attention.h"
#include "runtime/base/dtype.h"
#include "runtime/base/gpu_shape.h"
#include "runtime/program/library_product.h"

namespace einc {

struct AttentionTiles {
  static constexpr int kWarps = 4, kThreads = 32 * kWarps, kSetRows = 16;
  static constexpr int64_t kSwizzledRow = 64;  // elements of 16 bits: 128 bytes
  // A tile in shared memory of elements side by side along `inner`, for each step of the block's own axis or of the other.
  struct Tile {
    ValueId load;
    AxisId inner;
    int64_t width = 0;
    bool own = false;
  };
  struct Product {
    size_t step;               // in attention.steps
    int own = -1, other = -1;  // its operands' tiles; of mixes and gathers the other one alone
    AxisId inner = 0;          // of scores: summed over; of the rest: the result's own
  };
  // max x, then the sum of exp(x - max): `factor`, if any, is what a row's products are multiplied by at the end. With a `least` that a row
  // has one of, x is lowered by the larger of both, `most`.
  struct Online {
    uint16_t max = 0, sum = 0;
    ValueId x = kNoValue, exponential = kNoValue;
    ValueId most = kNoValue, least = kNoValue;
  };

  AxisId own = 0, other = 0;
  DType dtype = DType::bf16;  // f32: multiplied in tf32
  int step = 64;              // of the other axis at a time
  int sets = 1;               // of 16 rows that a warp keeps
  bool wgmma = false;         // of one set, tiles in parts of 64 columns
  int blocks_together = 1;    // on a processor at least
  std::vector<Tile> tiles;
  std::vector<ValueId> vectors;  // loads of a number for each place of the other axis, copied with its tiles
  std::vector<Product> scores, results;
  std::optional<Online> online;
  std::vector<uint16_t> folds;       // of kernels without `online`: before the products, in a pass of their own
  std::vector<ValueId> lefts;        // per result: what it multiplies, in registers
  std::vector<ValueId> row_factors;  // per result, with `online`: kNoValue or what its row is multiplied by
  int64_t batches = 1, own_blocks = 1;

  bool of_keys() const { return !results_over_keys; }
  bool results_over_keys = true;
  int warp_rows() const { return kSetRows * sets; }
  int block() const { return kWarps * warp_rows(); }            // rows of a block
  bool warps_skip() const { return block() > step && !wgmma; }  // a tile that lies beyond the bounds of their own rows
  int64_t blocks() const { return batches * own_blocks; }
  int64_t vector() const { return 16 / bytes_of(dtype); }                                // elements of 16 bytes
  int64_t depth() const { return 2 * vector(); }                                         // of one multiplication of tiles
  int64_t pitch(const Tile& tile) const { return tile.width + (wgmma ? 0 : vector()); }  // rows do not share banks
  int64_t shared_bytes() const;
};

// Nothing for kernels of other dtypes, layouts or folds; of f32 where it may be multiplied in tf32.
std::optional<AttentionTiles> tile_attention_for_tensor_cores(const Kernel& kernel, const GpuShape& gpu, ProductSums f32_products);

}  // namespace einc
