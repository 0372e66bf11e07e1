// SPDX-License-Identifier: Apache-2.0
// Panels of matrix tiles: 16 rows of 64 bytes each. A tile of the left operand has a row of it in each, 32 elements of depth; a
// tile of the right one has two elements of depth of 16 columns in each. Either is the other with its words of two elements
// turned.
#include <algorithm>

#include "compiler/codegen/llvm/emit_panels.h"
#include "compiler/codegen/llvm/transpose.h"

namespace einc {
namespace {

constexpr int64_t kTileBytes = 1024, kTileRowBytes = 64;
constexpr int kTileRows = TiledContraction::kTileRows, kTileDepth = TiledContraction::kTileDepth;

}  // namespace

// A value's lanes in bf16, 0 where the mask is off. Matrix tiles take subnormal numbers for 0, so their rounding may as well.
llvm::Value* PanelEmitter::bf16_bits(ValueId id) {
  const auto lanes = [&](Register x) {
    x = splat(b_, x, lanes_);
    return mask_ ? b_.CreateSelect(mask_, x, llvm::Constant::getNullValue(x->getType())) : x;
  };
  if (Register x = before_rounding(id)) return bf16_bits_of_normal(b_, lanes(x));
  return bf16_bits_of_rounded(b_, lanes(value(id)));
}

// The same of two depths: lane k of the first, then of the second, and so on.
llvm::Value* PanelEmitter::bf16_pairs(ValueId id, AxisId axis, Register mask, Register depth, int64_t count) {
  std::vector<Register> rounded, exact;
  for (int64_t d = 0; d < count; ++d) {
    axis_[t_.depth] = b_.CreateAdd(depth, i64(d));
    lanes_along(axis, kTileRows, mask, [&] {
      if (Register x = before_rounding(id)) {
        x = splat(b_, x, lanes_);
        exact.push_back(mask ? b_.CreateSelect(mask, x, llvm::Constant::getNullValue(x->getType())) : x);
      } else {
        rounded.push_back(bf16_bits(id));
      }
    });
  }
  std::vector<Register>& parts = exact.empty() ? rounded : exact;
  if (count == 1) parts.push_back(llvm::Constant::getNullValue(parts[0]->getType()));
  std::vector<int> order, after;
  for (int k = 0; k < kTileRows; ++k) order.insert(order.end(), {k, kTileRows + k});
  for (int k = 0; k < 2 * kTileRows; ++k) after.push_back(k);
  Register pairs = exact.empty()
                       ? b_.CreateShuffleVector(parts[0], parts[1], order)
                       : b_.CreateShuffleVector(bf16_bits_of_normal(b_, b_.CreateShuffleVector(parts[0], parts[1], after)), order);
  return b_.CreateBitCast(pairs, llvm::FixedVectorType::get(b_.getInt32Ty(), kTileRows));
}

// No tile of its panels goes beyond its end.
bool PanelEmitter::in_whole_tiles(AxisId axis) const {
  const int64_t unit = axis == t_.row ? t_.tile_rows : t_.tile_columns();
  return kernel_.extent(axis) % kTileRows == 0 && unit % kTileRows == 0;
}

// Vector j holds the elements at depths 2j and 2j + 1 of 16 rows or columns.
std::vector<llvm::Value*> PanelEmitter::pairs_by_width(ValueId id, AxisId axis, Register first, Register depth, int64_t depths) {
  axis_[axis] = first;
  Register left = b_.CreateTrunc(b_.CreateSub(i64(kernel_.extent(axis)), first), b_.getInt32Ty());
  std::vector<uint32_t> lanes;
  for (uint32_t k = 0; k < kTileRows; ++k) lanes.push_back(k);
  llvm::Constant* numbers = llvm::ConstantDataVector::get(context_, lanes);
  Register mask = nullptr;
  if (!in_whole_tiles(axis)) mask = b_.CreateICmpULT(numbers, splat(b_, left, kTileRows));
  std::vector<Register> pairs;
  for (int64_t d = 0; d < depths; d += 2)
    pairs.push_back(bf16_pairs(id, axis, mask, b_.CreateAdd(depth, i64(d)), std::min<int64_t>(2, depths - d)));
  while (pairs.size() < kTileDepth / 2) pairs.push_back(llvm::Constant::getNullValue(pairs.front()->getType()));
  return pairs;
}

// Vector i holds 32 elements of depth of row or column i; those beyond the last repeat it.
std::vector<llvm::Value*> PanelEmitter::pairs_by_depth(ValueId id, AxisId axis, Register first, Register depth, int64_t depths) {
  axis_[t_.depth] = depth;
  std::vector<Register> rows;
  lanes_along(t_.depth, kTileDepth, first_lanes(kTileDepth, depths), [&] {
    for (int i = 0; i < kTileRows; ++i) {
      Register place = b_.CreateAdd(first, i64(i));
      axis_[axis] = in_whole_tiles(axis) ? place : smaller(place, i64(kernel_.extent(axis) - 1));
      scopes_.emplace_back();
      rows.push_back(b_.CreateBitCast(bf16_bits(id), llvm::FixedVectorType::get(b_.getInt32Ty(), kTileRows)));
      scopes_.pop_back();
    }
  });
  return rows;
}

// `depths` of a tile's rows or columns from `first` on. Rows of the left operand hold their own depths, those of the right one pairs of
// them.
void PanelEmitter::pack_matrix_tile(const MatrixPanel& panel, Register first, Register depth, int64_t depths) {
  const bool by_depth = panel.source == PanelSource::by_depth;
  std::vector<Register> rows = by_depth ? pairs_by_depth(panel.operand, panel.axis, first, depth, depths)
                                        : pairs_by_width(panel.operand, panel.axis, first, depth, depths);
  if (by_depth != (panel.axis == t_.row)) rows = transpose(b_, std::move(rows));
  Register line = b_.CreateUDiv(b_.CreateSub(first, panel.range.begin), i64(kTileRows));
  Register offset =
      b_.CreateAdd(times(line, t_.tile_depths() * kTileBytes), times(b_.CreateSub(depth, panel.depth.begin), kTileBytes / kTileDepth));
  Register to = b_.CreateGEP(b_.getInt8Ty(), panel.to, offset);
  for (int64_t r = 0; r < kTileRows; ++r)
    b_.CreateAlignedStore(rows[static_cast<size_t>(r)], b_.CreateConstGEP1_64(b_.getInt8Ty(), to, static_cast<uint64_t>(r * kTileRowBytes)),
                          panel_alignment());
}

// Tile after tile along the axis whose elements are neighbours.
void PanelEmitter::pack_matrix_panel(const MatrixPanel& panel) {
  const auto along_axis = [&](const std::function<void(Register)>& body) {
    for_loop(panel.range.begin, panel.range.end, i64(kTileRows), body);
  };
  const auto along_depth = [&](const auto& body) { tiles(panel.depth, kTileDepth, t_.depths(), body); };
  if (panel.source == PanelSource::by_depth)
    along_axis(
        [&](Register first) { along_depth([&](Register depth, int64_t depths) { pack_matrix_tile(panel, first, depth, depths); }); });
  else
    along_depth(
        [&](Register depth, int64_t depths) { along_axis([&](Register first) { pack_matrix_tile(panel, first, depth, depths); }); });
}

PanelEmitter::MatrixSource PanelEmitter::matrix_left(const Block& block, Register row) {
  if (t_.left == PanelSource::in_place) {
    const Scalar& load = kernel_.values[kernel_.contraction->left];
    axis_[t_.row] = row, axis_[t_.depth] = block.depth.begin;
    scopes_.emplace_back();
    Register base = element(load.slot, place_of(load.index).scalar);
    scopes_.pop_back();
    return {base, load.index.affine.coefficient(t_.row) * bytes_of(DType::bf16), kTileRowBytes};
  }
  Register line = b_.CreateUDiv(b_.CreateSub(row, block.rows.begin), i64(kTileRows));
  return {b_.CreateGEP(b_.getInt8Ty(), left_panel_, times(line, t_.tile_depths() * kTileBytes)), kTileRowBytes, kTileBytes};
}

PanelEmitter::MatrixSource PanelEmitter::matrix_right(Register column, int tile) {
  Register line = b_.CreateAdd(b_.CreateUDiv(column, i64(kTileRows)), i64(tile));
  return {b_.CreateGEP(b_.getInt8Ty(), right_panel_, times(line, t_.tile_depths() * kTileBytes)), kTileRowBytes, kTileBytes};
}

PanelEmitter::Source PanelEmitter::pairs_of_rows(const Block& block, Register row) {
  constexpr int64_t kRowWords = kTileRowBytes / 4;
  Register in_tile = b_.CreateURem(b_.CreateSub(row, block.rows.begin), i64(kTileRows));
  return {at(matrix_left(block, row).base, times(in_tile, kRowWords)), kRowWords, 1};
}

}  // namespace einc
