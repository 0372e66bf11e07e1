// SPDX-License-Identifier: Apache-2.0
// A contraction as tiles: rows x columns of the result are made by a microkernel whose sums stay in registers, over panels of
// the operands that stay in the caches. Sums run over depth in order whatever the tiles, so no number here changes a result.
#pragma once
#include <optional>

#include "compiler/lower/kernel.h"
#include "compiler/lower/operand_groups.h"
#include "compiler/lower/padded_axis.h"
#include "compiler/lower/processor.h"

namespace einc {

// Where the microkernel reads an operand: where it lies, or in a panel filled by vectors along depth or along its other axis.
enum class PanelSource : uint8_t { in_place, by_depth, by_width };
// What multiplies: vectors of sums with one element of the left operand at a time or, of bf16, with two that are neighbours in depth;
// or the processor's tiles of 16 x 32 bf16.
enum class Microkernel : uint8_t { vectors, bf16_pairs, matrix_tiles };
enum class SharedAxis : uint8_t { rows, columns };

struct TiledContraction {
  static constexpr int kTileRows = 16, kTileDepth = 32;  // of a matrix tile
  Kernel kernel;                                         // with all rows, all columns and all depth axes as one axis each
  AxisId row = 0, column = 0, depth = 0;
  DType dtype = DType::f32;  // of sums and panels; panels in tiles are bf16
  Microkernel microkernel = Microkernel::vectors;
  int lanes = 1;  // of a vector
  int tile_rows = 1, tile_vectors = 1;
  int64_t block_rows = 1, block_columns = 1, block_depth = 1;
  int64_t cached_depth = 1;  // of matrix tiles: parts of a block's depth, in each of which the first cache keeps a right tile
  PanelSource left = PanelSource::in_place, right = PanelSource::in_place;
  std::optional<OperandGroups> left_groups{};  // how the left operand lies that is read in place, where its rows and depths are uneven
  int right_panels = 1;                        // two where one is filled while the other is read
  int panel_tiles = 1;                         // tiles of columns in a right panel
  std::vector<bool> streamed;                  // by buffer (or empty): results that are stored past the caches
  SharedAxis shared = SharedAxis::rows;        // what threads divide within a batch point
  int64_t batches = 1, parts = 1;              // the domain counts the tiles of that axis (`parts`) within batch points

  // Of the kernel as it is given: makes rows, columns and depth one axis each.
  void flatten_axes();
  // The result's transpose is made instead: what were rows are columns.
  void turn();
  bool is_turned() const { return row > column; }

  // Products with the zeros around an image, whose windows the left operand's rows are.
  std::optional<LeftOutPadding> left_out() const { return left_out_padding(*kernel.contraction); }

  int64_t rows() const { return kernel.extent(row); }
  int64_t columns() const { return kernel.extent(column); }
  int64_t depths() const { return kernel.extent(depth); }
  int64_t tile_columns() const { return int64_t{lanes} * tile_vectors; }
  // What a thread's part begins at a multiple of, along the axis that threads divide: panels in tiles are filled by whole tiles, whose
  // vectors lie within the innermost of the axes that the rows are only where they begin at multiples of their length.
  int64_t part_rows() const { return panels_in_tiles() && tile_rows < kTileRows ? kTileRows : tile_rows; }
  int64_t panel_columns() const { return panel_tiles * tile_columns(); }
  int64_t domain() const { return batches * parts; }
  bool depth_in_blocks() const { return block_depth < depths(); }
  // Whether a thread keeps sums in memory until their depth is done.
  bool sums_in_parts() const { return (microkernel == Microkernel::matrix_tiles ? cached_depth : block_depth) < depths(); }
  // Panels of bf16 lie in tiles of 16 rows or columns and 32 depths, which matrix tiles are loaded from.
  bool panels_in_tiles() const { return microkernel != Microkernel::vectors; }
  // Of such a panel: its depth in whole tiles.
  int64_t tile_depths() const { return (block_depth + kTileDepth - 1) / kTileDepth; }
  // Elements of the left panel from row to row: of each row when it is filled by depth, of a tile by its rows otherwise. Tiles do
  // not share their places in the first cache.
  int64_t left_pitch() const;

  // Thread's own memory, in elements of dtype: the left panel, one right panel, the sums whose depth is not done yet.
  int64_t left_elements() const, right_elements() const, partial_elements() const;
  int64_t scratch_bytes() const;
};

// The load of the largest buffer that a value is made of, when only the loops decide where it reads.
const Scalar* largest_load(const TiledContraction& plan, ValueId value);

// Nothing for contractions that plain loops do as well: integers, few columns, little depth. `unshared`: by buffer, those that
// no other one of the kernel's lies in.
std::optional<TiledContraction> tile_contraction(const Kernel& kernel, const Processor& processor, const std::vector<bool>& unshared);

}  // namespace einc
