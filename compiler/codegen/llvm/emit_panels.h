// SPDX-License-Identifier: Apache-2.0
// The operands of a tiled contraction: panels filled with their values, where the microkernel reads them, and what to fetch
// into the caches before it is read.
#pragma once
#include <algorithm>

#include "compiler/codegen/llvm/emit_values.h"
#include "compiler/lower/tile_contraction.h"

namespace einc {

class PanelEmitter : protected ValueEmitter {
 protected:
  static constexpr int kDepthUnroll = 4;
  static constexpr int64_t kDepthsPacked = 16;  // of a left panel filled by its rows, before the next rows' ones

  // A range of an axis: from `begin` to `end`, known only when the code runs.
  struct Extent {
    Register begin, end;
  };
  struct Block {
    Extent rows, columns, depth;
  };

  // Where an operand's first element lies and how far its rows (or columns) and its depths are apart, in elements.
  struct Source {
    Register base;
    int64_t width, depth;
  };

  // Lines of memory that are wanted soon: `rows` rows of `lines` lines each, `pitch` bytes apart. `per_phase` are fetched in each
  // phase of the depth loop, from line `first` on.
  struct Stream {
    Register base, first;
    int64_t pitch, lines, rows, per_phase;
    Prefetch wanted = Prefetch::into_second;
  };

  PanelEmitter(llvm::Module& module, const std::string& name, const TiledContraction& plan);
  ~PanelEmitter() = default;

  Register smaller(Register a, Register b);
  Register larger(Register a, Register b);
  Register at(Register base, Register index) { return b_.CreateInBoundsGEP(element_, base, index); }
  Register times(Register x, int64_t factor) { return b_.CreateMul(x, i64(factor), "", false, true); }
  llvm::Align alignment() const { return llvm::Align(static_cast<uint64_t>(bytes_of(t_.dtype))); }
  llvm::Align panel_alignment() const { return llvm::Align(static_cast<uint64_t>(bytes_of(t_.dtype) * t_.lanes)); }

  // body for each piece of `whole` of `size` elements, the last maybe shorter.
  void pieces(Extent whole, int64_t size, int64_t extent, const std::function<void(Extent)>& body);
  // body(first, size) for the whole tiles of `block`, then for what is left at the end of the axis.
  void tiles(Extent block, int64_t size, int64_t extent, const std::function<void(Register, int64_t)>& body);
  void lanes_along(AxisId axis, int lanes, Register mask, const std::function<void()>& body);
  // The first `count` of `lanes`; null when that is all.
  Register first_lanes(int lanes, int64_t count);

  void pack_left(const Block& block);
  // The right panel of columns from `column` on, filled here or, where there are two, while the one before was read.
  void make_right_panel(const Block& block, Register column, int64_t width);

  // An operand that is packed as matrix tiles: the rows or columns and the depths, and where they go.
  struct MatrixPanel {
    ValueId operand;
    AxisId axis;
    Extent range, depth;
    PanelSource source;
    Register to;
  };
  void pack_matrix_panel(const MatrixPanel& panel);
  MatrixPanel right_panel(Extent columns, Extent depth) {
    return {kernel_.contraction->right, t_.column, columns, depth, t_.right, right_panel_};
  }

  // The panel that is wanted next, where there are two: each phase of each tile of rows copies its share of the depth.
  struct NextPanel {
    Register base, panel, depths;  // its first element in memory, where it goes, how deep it is: 0 when there is none
    int64_t pitch;                 // bytes from depth to depth in memory
  };
  std::optional<NextPanel> next_right_panel(const Block& block, Register column);
  void copy_share(const NextPanel& next, Register first_depth);
  void copy_rest(const NextPanel& next, const Block& block);
  // The first depth that a phase copies, phases counted from the block's first tile of rows on.
  Register share_of(Register phase) { return times(phase, depths_per_phase()); }

  // Bytes of the first matrix tile of the left operand's rows from `row` on, and of the right panel's columns from column + 16 * tile on:
  // how far its rows are apart, and how far down the depth the next one lies.
  struct MatrixSource {
    Register base;
    int64_t pitch, next;
  };
  MatrixSource matrix_left(const Block& block, Register row);
  MatrixSource matrix_right(Register column, int tile);
  // The rows from `row` on in such tiles, in words of two elements of depth.
  Source pairs_of_rows(const Block& block, Register row);

  Source left_source(const Block& block, Register row);
  Source right_source(const Block& block, Register column, int vectors);

  // A tile's depth loop runs in phases, so that what each of them fetches does not hold it up: short ones, but of several steps.
  int64_t phases() const { return std::clamp<int64_t>(t_.block_depth / (6 * kDepthUnroll), 8, 32); }
  int64_t phase_steps() const { return (t_.block_depth / kDepthUnroll + phases() - 1) / phases(); }
  void fetch(const Stream& s, Register phase);
  // Lines that a tile's result goes to, so that its stores find them.
  std::vector<Stream> result_lines(Register row, Register column);
  // Fetches what the epilogue of a tile reads and writes along its columns in one row, while the tile's sums are made.
  void fetch_tile(Register row, Register column);
  // The operand's elements that the next panel of columns is made of: each tile of rows fetches its share.
  std::optional<Stream> next_panel(const Block& block, Register row, Register column);
  // The left operand's elements of the next tile, where few panels share the cost of reading them for the first time.
  std::optional<Stream> next_rows(const Source& left);

  const TiledContraction& t_;
  llvm::Type* element_;
  llvm::FixedVectorType* vector_ = nullptr;
  Register partial_ = nullptr;  // sums of a block whose depth is not done yet

 private:
  Register operand(ValueId id);
  void along_depth(Extent depth, int lanes, const std::function<void(Register offset)>& body);
  void pack_left_by_depth(const Block& block);
  void pack_left_by_rows(const Block& block);
  void pack_tiles_of_rows(const Block& block, Register first, int64_t count, Extent depth);
  void fetch_next_depths(int64_t rows);
  std::optional<int64_t> inner_rows() const;
  void pack_right_by_columns(const Block& block, Register column, int64_t width);
  void pack_right_by_depth(const Block& block, Register column, int vectors);
  bool in_whole_tiles(AxisId axis) const;
  void pack_matrix_tile(const MatrixPanel& panel, Register first, Register depth, int64_t depths);
  std::vector<Register> pairs_by_width(ValueId id, AxisId axis, Register first, Register depth, int64_t depths);
  std::vector<Register> pairs_by_depth(ValueId id, AxisId axis, Register first, Register depth, int64_t depths);
  Register bf16_bits(ValueId id);
  Register bf16_pairs(ValueId id, AxisId axis, Register mask, Register depth, int64_t count);
  void pack_right(const Block& block, Register column, int64_t width);
  int64_t depths_per_phase() const;
  void copy_depth(const NextPanel& next, Register depth);
  Source in_place(ValueId id, AxisId axis, Register i, const Block& block);

  Register left_panel_ = nullptr, right_panel_ = nullptr;  // where they are read
  Register right_panels_ = nullptr;
  llvm::AllocaInst *filled_ = nullptr, *current_ = nullptr;  // of two right panels: whether the wanted one is filled; its number
};

}  // namespace einc
