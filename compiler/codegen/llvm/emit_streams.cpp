// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "compiler/codegen/llvm/emit_panels.h"

namespace einc {

void PanelEmitter::fetch(const Stream& s, Register phase) {
  for (int64_t k = 0; k < s.per_phase; ++k) {
    Register line = b_.CreateAdd(s.first, b_.CreateAdd(times(phase, s.per_phase), i64(k)));
    Register row = s.lines == 1 ? line : b_.CreateUDiv(line, i64(s.lines));
    Register place = times(smaller(row, i64(s.rows - 1)), s.pitch);
    if (s.lines > 1) place = b_.CreateAdd(place, times(b_.CreateURem(line, i64(s.lines)), kCacheLine));
    prefetch(b_, b_.CreateGEP(b_.getInt8Ty(), s.base, place), s.wanted);
  }
}

std::vector<PanelEmitter::Stream> PanelEmitter::result_lines(Register row, Register column) {
  std::vector<Stream> streams;
  axis_[t_.row] = row, axis_[t_.column] = column;
  for (const Store& store : kernel_.stages[1].stores) {
    if (store.index.affine.coefficient(t_.column) != 1 || store.mode != StoreMode::set || !store.index.dynamic.empty()) continue;
    const int64_t size = bytes_of(kernel_.buffers[store.buffer].dtype);
    Stream s{
        element(store.buffer, place_of(store.index).scalar), i64(0), store.index.affine.coefficient(t_.row) * size, 0, t_.tile_rows, 0};
    s.lines = (t_.tile_columns() * size + kCacheLine - 1) / kCacheLine;
    s.per_phase = (s.rows * s.lines + phases() - 1) / phases();
    s.wanted = Prefetch::to_write;
    streams.push_back(s);
  }
  return streams;
}

void PanelEmitter::fetch_tile(Register row, Register column) {
  struct Piece {
    uint16_t buffer;
    const Subscript* index;
    Prefetch wanted;
  };
  std::vector<Piece> pieces;
  const std::vector<bool> needed = needed_by(kernel_, kernel_.stages[1]);
  const auto lies_along = [&](const Subscript& index) { return index.affine.coefficient(t_.column) == 1 && index.dynamic.empty(); };
  for (ValueId id = 0; id < kernel_.values.size(); ++id) {
    const Scalar& v = kernel_.values[id];
    if (needed[id] && v.kind == ScalarKind::load && lies_along(v.index)) pieces.push_back({v.slot, &v.index, Prefetch::into_first});
  }
  for (const Store& s : kernel_.stages[1].stores)
    if (lies_along(s.index) && !t_.streamed[s.buffer]) pieces.push_back({s.buffer, &s.index, Prefetch::to_write});
  if (pieces.empty()) return;
  axis_[t_.row] = row, axis_[t_.column] = column;
  for (const Piece& p : pieces) {
    Register first = element(p.buffer, place_of(*p.index).scalar);
    for (int64_t at = 0; at < t_.tile_columns() * bytes_of(kernel_.buffers[p.buffer].dtype); at += kCacheLine)
      prefetch(b_, b_.CreateConstGEP1_64(b_.getInt8Ty(), first, static_cast<uint64_t>(at)), p.wanted);
  }
}

std::optional<PanelEmitter::Stream> PanelEmitter::next_panel(const Block& block, Register row, Register column) {
  const bool copied = t_.right == PanelSource::in_place || t_.right_panels > 1;
  const Scalar* load = copied ? nullptr : largest_load(t_, kernel_.contraction->right);
  if (!load || t_.rows() < t_.tile_rows) return std::nullopt;
  const int64_t size = bytes_of(kernel_.buffers[load->slot].dtype);
  const int64_t along_columns = load->index.affine.coefficient(t_.column) * size,
                along_depth = load->index.affine.coefficient(t_.depth) * size;
  Register beside = b_.CreateAdd(column, i64(t_.tile_columns()));
  Register is_beside = b_.CreateICmpSLT(beside, block.columns.end), is_below = b_.CreateICmpSLT(block.depth.end, i64(t_.depths()));
  axis_[t_.column] = b_.CreateSelect(is_beside, beside, b_.CreateSelect(is_below, block.columns.begin, block.columns.end));
  axis_[t_.depth] = b_.CreateSelect(is_beside, block.depth.begin, b_.CreateSelect(is_below, block.depth.end, i64(0)));
  Stream s{element(load->slot, place_of(load->index).scalar), nullptr, along_depth, 1, t_.block_depth, 1};
  if (along_depth == size)
    s.pitch = along_columns, s.rows = t_.tile_columns(), s.lines = t_.block_depth * size / kCacheLine + 1;
  else if (along_columns == size)
    s.lines = t_.tile_columns() * size / kCacheLine + (along_depth % kCacheLine != 0 ? 1 : 0);
  else
    return std::nullopt;
  const int64_t tiles = std::max<int64_t>(1, t_.block_rows / t_.tile_rows);
  s.per_phase = (s.rows * s.lines + phases() * tiles - 1) / (phases() * tiles);
  s.first = times(b_.CreateUDiv(b_.CreateSub(row, block.rows.begin), i64(t_.tile_rows)), phases() * s.per_phase);
  return s;
}

std::optional<PanelEmitter::Stream> PanelEmitter::next_rows(const Source& left) {
  if (t_.left != PanelSource::in_place || t_.left_groups || t_.columns() > 2 * t_.tile_columns()) return std::nullopt;
  const int64_t size = bytes_of(t_.dtype);
  Stream s{at(left.base, i64(t_.tile_rows * left.width)), i64(0),       left.width * size,
           t_.block_depth * size / kCacheLine + 1,        t_.tile_rows, 1};
  if (left.depth != 1) s.pitch = left.depth * size, s.lines = 1, s.rows = t_.block_depth;
  s.per_phase = (s.rows * s.lines + phases() - 1) / phases();
  return s;
}

}  // namespace einc
