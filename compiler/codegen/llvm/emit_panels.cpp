// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/emit_panels.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler/codegen/llvm/transpose.h"
#include "runtime/program/kernel_function.h"

namespace einc {

PanelEmitter::PanelEmitter(llvm::Module& module, const std::string& name, const TiledContraction& plan)
    : ValueEmitter(module, name, plan.kernel), t_(plan), element_(register_type(context_, plan.dtype)) {
  lane_start_ = LaneStart::aligned;
  vector_ = llvm::FixedVectorType::get(element_, static_cast<unsigned>(t_.lanes));
  left_panel_ = field(offsetof(KernelArguments, scratch), b_.getPtrTy());
  right_panel_ = right_panels_ = at(left_panel_, i64((t_.left_elements() + t_.lanes - 1) / t_.lanes * t_.lanes));
  partial_ = at(right_panels_, i64(t_.right_panels * t_.right_elements()));
  if (t_.right_panels == 1) return;
  filled_ = b_.CreateAlloca(b_.getInt1Ty()), current_ = b_.CreateAlloca(b_.getInt64Ty());
  b_.CreateStore(b_.getFalse(), filled_);
  b_.CreateStore(i64(0), current_);
}

llvm::Value* PanelEmitter::smaller(Register a, Register b) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b); }
llvm::Value* PanelEmitter::larger(Register a, Register b) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b); }

void PanelEmitter::pieces(Extent whole, int64_t size, int64_t extent, const std::function<void(Extent)>& body) {
  if (size >= extent) return body(whole);
  for_loop(whole.begin, whole.end, i64(size), [&](Register i) { body({i, smaller(b_.CreateAdd(i, i64(size)), whole.end)}); });
}

void PanelEmitter::tiles(Extent block, int64_t size, int64_t extent, const std::function<void(Register, int64_t)>& body) {
  const int64_t rest = extent % size;
  Register whole = block.end;
  if (rest > 0) whole = b_.CreateSub(block.end, b_.CreateURem(b_.CreateSub(block.end, block.begin), i64(size)));
  if (extent >= size) for_loop(block.begin, whole, i64(size), [&](Register i) { body(i, size); });
  if (rest > 0) if_then(b_.CreateICmpSLT(whole, block.end), [&] { body(whole, rest); });
}

void PanelEmitter::lanes_along(AxisId axis, int lanes, Register mask, const std::function<void()>& body) {
  lane_axis_ = axis, lanes_ = lanes, mask_ = mask;
  scopes_.emplace_back();
  body();
  scopes_.pop_back();
  lane_axis_.reset(), lanes_ = 1, mask_ = nullptr;
}

llvm::Value* PanelEmitter::first_lanes(int lanes, int64_t count) {
  if (count >= lanes) return nullptr;
  std::vector<llvm::Constant*> bits;
  for (int k = 0; k < lanes; ++k) bits.push_back(b_.getInt1(k < count));
  return llvm::ConstantVector::get(bits);
}

// An operand's value in every lane, 0 where the mask is off.
llvm::Value* PanelEmitter::operand(ValueId id) { return splat(b_, as(id, t_.dtype), lanes_); }

// Steps of so many lanes along depth, then one with the lanes that are left.
void PanelEmitter::along_depth(Extent depth, int lanes, const std::function<void(Register offset)>& body) {
  const auto step = [&](Register p, Register mask) {
    axis_[t_.depth] = p;
    lanes_along(t_.depth, lanes, mask, [&] { body(b_.CreateSub(p, depth.begin)); });
  };
  tiles(depth, lanes, t_.depths(), [&](Register p, int64_t count) { step(p, first_lanes(lanes, count)); });
}

// Two vectors at a time where depth is even enough: what one waits for, the other fills.
void PanelEmitter::pack_left_by_depth(const Block& block) {
  const bool even = t_.depths() % (2 * t_.lanes) == 0 && t_.block_depth % (2 * t_.lanes) == 0;
  const int lanes = even ? 2 * t_.lanes : t_.lanes;
  for_loop(block.rows.begin, block.rows.end, i64(1), [&](Register i) {
    axis_[t_.row] = i;
    Register row = at(left_panel_, times(b_.CreateSub(i, block.rows.begin), t_.left_pitch()));
    along_depth(block.depth, lanes,
                [&](Register offset) { b_.CreateAlignedStore(operand(kernel_.contraction->left), at(row, offset), panel_alignment()); });
  });
}

// A few depths of one group of tiles after the other, so that what is read and what is written lies in few pages at a time. Rows that are
// several axes in one are read by whole vectors where a tile stays within the innermost of them.
void PanelEmitter::pack_left_by_rows(const Block& block) {
  const std::optional<int64_t> inner = inner_rows();
  const bool even = std::has_single_bit(static_cast<unsigned>(t_.tile_rows));
  const bool within = even && inner && t_.tile_rows > 1 && *inner % t_.tile_rows == 0;
  const int together = even && !inner ? 2 * t_.lanes / t_.tile_rows : 1;
  lane_start_ = within ? LaneStart::aligned : LaneStart::anywhere;
  pieces(block.depth, kDepthsPacked, t_.depths(), [&](Extent depth) {
    Extent single = block.rows;
    if (together > 1) {
      const int64_t rows = int64_t{together} * t_.tile_rows;
      single.begin = b_.CreateSub(single.end, b_.CreateURem(b_.CreateSub(single.end, single.begin), i64(rows)));
      for_loop(block.rows.begin, single.begin, i64(rows), [&](Register i) { pack_tiles_of_rows(block, i, rows, depth); });
    }
    tiles(single, t_.tile_rows, t_.rows(), [&](Register i, int64_t count) { pack_tiles_of_rows(block, i, count, depth); });
  });
  lane_start_ = LaneStart::aligned;
}

// `count` rows: whole tiles, or a part of one. Each tile's share of a vector goes to its own place.
void PanelEmitter::pack_tiles_of_rows(const Block& block, Register first, int64_t count, Extent depth) {
  const auto lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(count, std::max(t_.tile_rows, 2)))));
  axis_[t_.row] = first;
  Register panel = at(left_panel_, times(b_.CreateSub(first, block.rows.begin), t_.left_pitch()));
  for_loop(depth.begin, depth.end, i64(1), [&](Register p) {
    axis_[t_.depth] = p;
    Register to = at(panel, times(b_.CreateSub(p, block.depth.begin), t_.tile_rows));
    fetch_next_depths(count);
    lanes_along(t_.row, lanes, first_lanes(lanes, count), [&] {
      Register x = operand(kernel_.contraction->left);
      if (mask_) b_.CreateMaskedStore(x, to, alignment(), mask_);
      for (int64_t row = 0; !mask_ && row < count; row += t_.tile_rows) {
        std::vector<int> own(static_cast<size_t>(t_.tile_rows));
        std::iota(own.begin(), own.end(), static_cast<int>(row));
        b_.CreateAlignedStore(b_.CreateShuffleVector(x, own), at(to, i64(row * t_.left_pitch())), alignment());
      }
    });
  });
}

// Extent of the innermost of the axes that the rows of the left operand are; nothing when they are one.
std::optional<int64_t> PanelEmitter::inner_rows() const {
  for (const Scalar& v : kernel_.values) {
    if (v.kind != ScalarKind::remainder) continue;
    const Scalar& whole = kernel_.values[v.operands[0]];
    if (whole.kind == ScalarKind::index && whole.index.affine.coefficient(t_.row) == 1) return v.integer;
  }
  return std::nullopt;
}

// What is packed of these rows when the depths at hand are done.
void PanelEmitter::fetch_next_depths(int64_t rows) {
  const Scalar* load = largest_load(t_, kernel_.contraction->left);
  if (!load || load->index.affine.coefficient(t_.row) != 1) return;
  const int64_t size = bytes_of(kernel_.buffers[load->slot].dtype), step = load->index.affine.coefficient(t_.depth) * size;
  Register from = element(load->slot, place_of(load->index).scalar);
  for (int64_t byte = 0; byte < rows * size; byte += kCacheLine)
    prefetch(b_, b_.CreateConstGEP1_64(b_.getInt8Ty(), from, static_cast<uint64_t>(kDepthsPacked * step + byte)), Prefetch::into_first);
}

void PanelEmitter::pack_right_by_columns(const Block& block, Register column, int64_t width) {
  const int64_t pitch = (width + t_.lanes - 1) / t_.lanes * t_.lanes;
  for_loop(block.depth.begin, block.depth.end, i64(1), [&](Register p) {
    axis_[t_.depth] = p;
    Register row = at(right_panel_, times(b_.CreateSub(p, block.depth.begin), pitch));
    for (int64_t k = 0; k < pitch; k += t_.lanes) {
      axis_[t_.column] = b_.CreateAdd(column, i64(k));
      lanes_along(t_.column, t_.lanes, first_lanes(t_.lanes, width - k),
                  [&] { b_.CreateAlignedStore(operand(kernel_.contraction->right), at(row, i64(k)), panel_alignment()); });
    }
  });
}

// Squares: a vector along depth of each column, turned. Columns beyond the last repeat it; nobody reads their sums.
void PanelEmitter::pack_right_by_depth(const Block& block, Register column, int vectors) {
  const int64_t pitch = int64_t{vectors} * t_.lanes;
  for_loop(i64(0), i64(pitch), i64(t_.lanes), [&](Register first) {
    along_depth(block.depth, t_.lanes, [&](Register offset) {
      std::vector<Register> square;
      for (int c = 0; c < t_.lanes; ++c) {
        Register j = b_.CreateAdd(b_.CreateAdd(column, first), i64(c));
        axis_[t_.column] = t_.columns() % t_.lanes == 0 ? j : smaller(j, i64(t_.columns() - 1));
        scopes_.emplace_back();
        square.push_back(operand(kernel_.contraction->right));
        scopes_.pop_back();
      }
      square = transpose(b_, std::move(square));
      Register to = at(right_panel_, b_.CreateAdd(times(offset, pitch), first));
      for (int p = 0; p < t_.lanes; ++p) b_.CreateAlignedStore(square[static_cast<size_t>(p)], at(to, i64(p * pitch)), panel_alignment());
    });
  });
}

PanelEmitter::Source PanelEmitter::left_source(const Block& block, Register row) {
  if (t_.panels_in_tiles()) return pairs_of_rows(block, row);
  if (t_.left == PanelSource::in_place) return in_place(kernel_.contraction->left, t_.row, row, block);
  Register offset = b_.CreateSub(row, block.rows.begin);
  if (t_.left == PanelSource::by_depth) return {at(left_panel_, times(offset, t_.left_pitch())), t_.left_pitch(), 1};
  return {at(left_panel_, times(offset, t_.left_pitch())), 1, t_.tile_rows};
}

PanelEmitter::Source PanelEmitter::right_source(const Block& block, Register column, int vectors) {
  if (t_.right == PanelSource::in_place) return in_place(kernel_.contraction->right, t_.column, column, block);
  return {right_panel_, 1, int64_t{vectors} * t_.lanes};
}

PanelEmitter::Source PanelEmitter::in_place(ValueId id, AxisId axis, Register i, const Block& block) {
  const Scalar& load = kernel_.values[id];
  axis_[axis] = i;
  axis_[t_.depth] = block.depth.begin;
  if (id == kernel_.contraction->left && t_.left_groups)
    return {element(load.slot, place_of(load.index).scalar), t_.left_groups->row_step, t_.left_groups->depth_step};
  return {element(load.slot, place_of(load.index).scalar), load.index.affine.coefficient(axis), load.index.affine.coefficient(t_.depth)};
}

void PanelEmitter::pack_left(const Block& block) {
  if (t_.panels_in_tiles()) {
    if (t_.left != PanelSource::in_place)
      pack_matrix_panel({kernel_.contraction->left, t_.row, block.rows, block.depth, t_.left, left_panel_});
    return;
  }
  if (t_.left == PanelSource::by_depth) pack_left_by_depth(block);
  if (t_.left == PanelSource::by_width) pack_left_by_rows(block);
}

void PanelEmitter::pack_right(const Block& block, Register column, int64_t width) {
  if (t_.right == PanelSource::by_depth) pack_right_by_depth(block, column, static_cast<int>((width + t_.lanes - 1) / t_.lanes));
  if (t_.right == PanelSource::by_width) pack_right_by_columns(block, column, width);
}

}  // namespace einc
