// SPDX-License-Identifier: Apache-2.0
// An attention kernel as tiles: lanes run along a block of rows while scores are made and folded, along a result's own axis in
// mixes and gathers, so that no operand but the rows' own is turned. Of one row alone, lanes run along what scores sum over and then
// along its keys. What a block needs lies in the thread's memory: its rows times the keys of each tile, never rows times keys of all.
#pragma once
#include "compiler/lower/attention.h"
#include "compiler/lower/processor.h"

namespace einc {

struct TiledAttention {
  // Per step that is a product. Offsets and pitches in elements of f32; -1: none.
  struct Product {
    AxisId inner = 0;       // what scores sum over, the result's own axis of mixes and gathers; one axis
    bool in_place = false;  // the right operand is read where it lies
    bool on_matrix_tiles = false;
    int64_t left_panel = -1, right_panel = -1, sums = -1;  // of mixes on matrix tiles: a block's results
    int64_t pitch = 0;                                     // of the right panel and the sums
    int tile_rows = 1, tile_vectors = 1;
  };

  Kernel kernel;
  AttentionSchedule schedule;
  std::vector<Product> products;  // per step
  int lanes = 1;
  int64_t batches = 1, blocks = 1;
  int64_t tile_elements = 0, elements = 0;

  // Without products: the kernel with one axis for what each of them sums over or makes, and what follows from the vectors' lanes.
  static TiledAttention around(const Kernel& kernel, int lanes);

  const Attention& attention() const { return *kernel.attention; }
  int64_t rows() const { return kernel.extent(attention().row); }
  int64_t keys() const { return kernel.extent(attention().key); }
  int64_t block_rows() const { return attention().block_rows; }
  bool has_one_row() const { return block_rows() == 1; }
  int row_vectors() const { return static_cast<int>(block_rows() / lanes); }  // of several rows
  bool gathers() const;
  bool has_matrix_tiles() const;
  // The domain counts the blocks of rows within batch points, or batch points when gathers sum over the rows.
  int64_t parts() const { return gathers() ? 1 : blocks; }
  int64_t domain() const { return batches * parts(); }
  int64_t scratch_bytes() const { return elements * 4; }
};

TiledAttention tile_attention(const Kernel& kernel, const Processor& processor);

}  // namespace einc
