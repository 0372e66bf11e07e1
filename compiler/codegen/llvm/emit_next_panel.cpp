// SPDX-License-Identifier: Apache-2.0

#include "compiler/codegen/llvm/emit_panels.h"

namespace einc {

void PanelEmitter::make_right_panel(const Block& block, Register column, int64_t width) {
  if (t_.right_panels == 1) return pack_right(block, column, width);
  Register current = b_.CreateLoad(b_.getInt64Ty(), current_);
  right_panel_ = at(right_panels_, times(current, t_.right_elements()));
  if_then(b_.CreateNot(b_.CreateLoad(b_.getInt1Ty(), filled_)), [&] { pack_right(block, column, width); });
}

// Whole tiles of columns only: the one beside, or the first one of the next depths.
std::optional<PanelEmitter::NextPanel> PanelEmitter::next_right_panel(const Block& block, Register column) {
  if (t_.right_panels == 1) return std::nullopt;
  const auto is_whole = [&](Register first) { return b_.CreateICmpSLE(b_.CreateAdd(first, i64(t_.tile_columns())), block.columns.end); };
  Register beside = b_.CreateAdd(column, i64(t_.tile_columns()));
  Register is_beside = is_whole(beside), is_last = b_.CreateICmpSGE(beside, block.columns.end);
  Register is_below =
      b_.CreateAnd(b_.CreateAnd(is_last, b_.CreateICmpSLT(block.depth.end, i64(t_.depths()))), is_whole(block.columns.begin));
  Register exists = b_.CreateOr(is_beside, is_below), other = b_.CreateSub(i64(1), b_.CreateLoad(b_.getInt64Ty(), current_));
  b_.CreateStore(exists, filled_);
  b_.CreateStore(other, current_);
  axis_[t_.column] = b_.CreateSelect(is_beside, beside, block.columns.begin);
  axis_[t_.depth] = b_.CreateSelect(is_below, block.depth.end, block.depth.begin);
  Register depths = smaller(i64(t_.block_depth), b_.CreateSub(i64(t_.depths()), axis_[t_.depth]));
  const Scalar& load = kernel_.values[kernel_.contraction->right];
  return NextPanel{element(load.slot, place_of(load.index).scalar), at(right_panels_, times(other, t_.right_elements())),
                   b_.CreateSelect(exists, depths, i64(0)), load.index.affine.coefficient(t_.depth) * bytes_of(t_.dtype)};
}

int64_t PanelEmitter::depths_per_phase() const {
  const int64_t rows = t_.shared == SharedAxis::rows ? t_.block_rows / 2 : t_.block_rows;  // a thread may have few of them
  const int64_t all = phases() * std::max<int64_t>(1, rows / t_.tile_rows);
  return (t_.block_depth + all - 1) / all;
}

void PanelEmitter::copy_depth(const NextPanel& next, Register depth) {
  Register from = b_.CreateGEP(b_.getInt8Ty(), next.base, times(depth, next.pitch)), to = at(next.panel, times(depth, t_.tile_columns()));
  for (int64_t k = 0; k < t_.tile_columns(); k += t_.lanes)
    b_.CreateAlignedStore(b_.CreateAlignedLoad(vector_, at(from, i64(k)), alignment()), at(to, i64(k)), panel_alignment());
}

// What is copied a few phases later is fetched: until then it is there, and not yet driven out by lines of the same place.
void PanelEmitter::copy_share(const NextPanel& next, Register first_depth) {
  constexpr int64_t kPhasesAhead = 4;
  const int64_t count = depths_per_phase(), bytes = t_.tile_columns() * bytes_of(t_.dtype);
  const int64_t touched = next.pitch % kCacheLine == 0 ? bytes : bytes + kCacheLine - 1;
  Register last = b_.CreateSub(next.depths, i64(1));
  if_then(b_.CreateICmpSLE(first_depth, last), [&] {
    for (int64_t k = 0; k < count; ++k) {
      Register ahead = smaller(b_.CreateAdd(first_depth, i64(count * kPhasesAhead + k)), last);
      Register from = b_.CreateGEP(b_.getInt8Ty(), next.base, times(ahead, next.pitch));
      for (int64_t byte = 0; byte < touched; byte += kCacheLine)
        prefetch(b_, b_.CreateConstGEP1_64(b_.getInt8Ty(), from, static_cast<uint64_t>(byte)), Prefetch::into_second);
    }
    for (int64_t k = 0; k < count; ++k) copy_depth(next, smaller(b_.CreateAdd(first_depth, i64(k)), last));
  });
}

// What whole tiles of rows have left.
void PanelEmitter::copy_rest(const NextPanel& next, const Block& block) {
  Register tiles = b_.CreateUDiv(b_.CreateSub(block.rows.end, block.rows.begin), i64(t_.tile_rows));
  for_loop(share_of(times(tiles, phases())), next.depths, i64(1), [&](Register depth) { copy_depth(next, depth); });
}

}  // namespace einc
