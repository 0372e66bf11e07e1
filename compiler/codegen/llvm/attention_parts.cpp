// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/attention_parts.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "compiler/codegen/llvm/transpose.h"
#include "runtime/program/kernel_function.h"

namespace einc {

AttentionParts::AttentionParts(llvm::Module& module, const std::string& name, const TiledAttention& plan)
    : ValueEmitter(module, name, plan.kernel), t_(plan), a_(plan.attention()) {
  lane_start_ = LaneStart::aligned;
  vector_ = llvm::FixedVectorType::get(b_.getFloatTy(), static_cast<unsigned>(t_.lanes));
  scratch_ = field(offsetof(KernelArguments, scratch), b_.getPtrTy());
}

llvm::Value* AttentionParts::smaller(Register a, Register b) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b); }
llvm::Value* AttentionParts::larger(Register a, Register b) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b); }

void AttentionParts::tiles(Register begin, Register end, int64_t size, int64_t extent, const std::function<void(Register, int64_t)>& body) {
  const int64_t rest = extent % size;
  Register whole = end;
  if (rest > 0) whole = b_.CreateSub(end, b_.CreateURem(b_.CreateSub(end, begin), i64(size)));
  if (extent >= size) for_loop(begin, whole, i64(size), [&](Register i) { body(i, size); });
  if (rest > 0) if_then(b_.CreateICmpSLT(whole, end), [&] { body(whole, rest); });
}

void AttentionParts::columns(const Product& p, const std::function<void(int64_t, int, int64_t)>& body) {
  const int64_t extent = kernel_.extent(p.inner), most = int64_t{p.tile_vectors} * t_.lanes;
  for (int64_t first = 0; first < extent; first += most) {
    const int64_t width = std::min(most, extent - first);
    body(first, static_cast<int>((width + t_.lanes - 1) / t_.lanes), width);
  }
}

void AttentionParts::lanes_along(AxisId axis, Register mask, const std::function<void()>& body) {
  lane_axis_ = axis, lanes_ = t_.lanes, mask_ = mask;
  scopes_.emplace_back();
  body();
  scopes_.pop_back();
  lane_axis_.reset(), lanes_ = 1, mask_ = nullptr;
}

llvm::Value* AttentionParts::first_lanes(int64_t count) {
  if (count >= t_.lanes) return nullptr;
  std::vector<llvm::Constant*> bits;
  for (int k = 0; k < t_.lanes; ++k) bits.push_back(b_.getInt1(k < count));
  return llvm::ConstantVector::get(bits);
}

llvm::Value* AttentionParts::operand(ValueId id) { return splat(b_, as(id, DType::f32), lanes_); }

void AttentionParts::pack_right(const AttentionStep& step, const Product& p, AxisId axis, Register first, Register last) {
  Register panel = scratch(p.right_panel);
  for_loop(first, last, i64(1), [&](Register i) {
    axis_[axis] = i;
    Register row = times(b_.CreateSub(i, first), p.pitch);
    for (int64_t k = 0; k < kernel_.extent(p.inner); k += t_.lanes) {
      axis_[p.inner] = i64(k);
      lanes_along(p.inner, first_lanes(kernel_.extent(p.inner) - k),
                  [&] { store_at(operand(step.right), panel, b_.CreateAdd(row, i64(k))); });
    }
  });
}

// Whether the operand's elements along its inner axis are neighbours, so that squares of them are loaded and turned.
bool AttentionParts::turns_squares(const AttentionStep& step, const Product& p) const {
  std::vector<bool> used(kernel_.values.size(), false);
  used[step.left] = true;
  bool neighbours = false;
  for (size_t i = step.left + 1; i-- > 0;) {
    if (!used[i]) continue;
    const Scalar& v = kernel_.values[i];
    for (ValueId x : v.operands) used[x] = true;
    if (v.kind == ScalarKind::load && v.index.affine.coefficient(p.inner) == 1) neighbours = true;
  }
  return neighbours && kernel_.extent(p.inner) >= t_.lanes;
}

void AttentionParts::pack_left(const AttentionStep& step, const Product& p, Register first, Register count) {
  Register panel = scratch(p.left_panel);
  const int64_t depth = kernel_.extent(p.inner), pitch = t_.block_rows();
  const int64_t whole = turns_squares(step, p) ? depth / t_.lanes * t_.lanes : 0;
  for (int v = 0; v < t_.row_vectors(); ++v) {
    if (whole > 0)
      for_loop(i64(0), i64(whole), i64(t_.lanes), [&](Register d) {
        axis_[p.inner] = d;
        std::vector<Register> square;
        for (int r = 0; r < t_.lanes; ++r) {
          Register row = b_.CreateAdd(first, i64(int64_t{v} * t_.lanes + r));
          axis_[a_.row] = t_.rows() % t_.block_rows() == 0 ? row : smaller(row, i64(t_.rows() - 1));
          lanes_along(p.inner, nullptr, [&] { square.push_back(operand(step.left)); });
        }
        square = transpose(b_, std::move(square));
        for (int k = 0; k < t_.lanes; ++k)
          store_at(square[static_cast<size_t>(k)], panel, b_.CreateAdd(times(b_.CreateAdd(d, i64(k)), pitch), i64(int64_t{v} * t_.lanes)));
      });
    if (whole < depth)
      for_loop(i64(whole), i64(depth), i64(1), [&](Register d) {
        axis_[p.inner] = d;
        axis_[a_.row] = b_.CreateAdd(first, i64(int64_t{v} * t_.lanes));
        lanes_along(a_.row, rows_mask(count, v),
                    [&] { store_at(operand(step.left), panel, b_.CreateAdd(times(d, pitch), i64(int64_t{v} * t_.lanes))); });
      });
  }
}

void AttentionParts::pack_row(const AttentionStep& step, const Product& p) {
  Register panel = scratch(p.left_panel);
  for_loop(i64(0), i64(kernel_.extent(p.inner)), i64(t_.lanes), [&](Register k) {
    axis_[p.inner] = k;
    Register mask = lanes_before(k, i64(kernel_.extent(p.inner)), kernel_.extent(p.inner));
    lanes_along(p.inner, mask, [&] { store_at(only(mask, operand(step.left)), panel, k); });
  });
}

llvm::Value* AttentionParts::row_scores(const AttentionStep& step, const Product& p, Register key) {
  const auto lanes = static_cast<size_t>(t_.lanes);
  const int64_t extent = kernel_.extent(p.inner);
  std::vector<Register> keys;
  for (int64_t i = 0; i < t_.lanes; ++i)
    keys.push_back(right_at(step, p, a_.key, smaller(b_.CreateAdd(key, i64(i)), i64(t_.keys() - 1)), i64(0), i64(0)));
  const RegisterBlock registers{b_, vector_, llvm::Align(4), 1, 1, nullptr};
  std::vector<llvm::AllocaInst*> sums;
  IrBuilder entry(entry_, entry_->begin());
  for (size_t i = 0; i < lanes; ++i) sums.push_back(entry.CreateAlloca(vector_));
  for (llvm::AllocaInst* sum : sums) b_.CreateStore(llvm::Constant::getNullValue(vector_), sum);
  for_loop(i64(0), i64(extent), i64(t_.lanes), [&](Register k) {
    Register row = vector_at(scratch(p.left_panel), k), mask = lanes_before(k, i64(extent), extent);
    for (size_t i = 0; i < lanes; ++i) {
      WideOperand wide = wide_right(step, p, keys[i], 0);
      wide.base = b_.CreateInBoundsGEP(registers.stored(wide), wide.base, k);
      Register x = registers.load(wide, 0, mask);
      b_.CreateStore(b_.CreateIntrinsic(vector_, llvm::Intrinsic::fma, {x, row, b_.CreateLoad(vector_, sums[i])}), sums[i]);
    }
  });
  std::vector<Register> square;
  for (llvm::AllocaInst* sum : sums) square.push_back(b_.CreateLoad(vector_, sum));
  square = transpose(b_, std::move(square));
  for (size_t half = lanes / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) square[i] = b_.CreateFAdd(square[i], square[i + half]);
  return square.front();
}

llvm::Value* AttentionParts::only(Register mask, Register x) {
  return mask ? b_.CreateSelect(mask, x, llvm::Constant::getNullValue(vector_)) : x;
}

llvm::Value* AttentionParts::lanes_before(Register first, Register last, int64_t extent) {
  return extent % t_.lanes == 0 ? nullptr : lanes_below(b_.CreateSub(last, first));
}

llvm::Value* AttentionParts::rows_mask(Register count, int v) {
  if (t_.rows() % t_.block_rows() == 0) return nullptr;
  return lanes_below(b_.CreateSub(count, i64(int64_t{v} * t_.lanes)));
}

llvm::Value* AttentionParts::lanes_below(Register left) {
  const int lanes = lanes_;
  lanes_ = t_.lanes;
  Register mask = b_.CreateICmpSLT(lane_numbers(b_.getInt64Ty()), splat(b_, left, t_.lanes));
  lanes_ = lanes;
  return mask;
}

llvm::Value* AttentionParts::right_at(const AttentionStep& step, const Product& p, AxisId axis, Register i, Register panel_first,
                                      Register inner) {
  if (!p.in_place) return at(scratch(p.right_panel), b_.CreateAdd(times(b_.CreateSub(i, panel_first), p.pitch), inner));
  axis_[axis] = i;
  axis_[p.inner] = inner;
  const Scalar& load = kernel_.values[step.right];
  return element(load.slot, place_of(load.index).scalar);
}

int64_t AttentionParts::right_step(const AttentionStep& step, const Product& p, AxisId axis) const {
  return p.in_place ? kernel_.values[step.right].index.affine.coefficient(axis) : p.pitch;
}

int64_t AttentionParts::inner_step(const AttentionStep& step, const Product& p) const {
  return p.in_place ? kernel_.values[step.right].index.affine.coefficient(p.inner) : 1;
}

WideOperand AttentionParts::wide_right(const AttentionStep& step, const Product& p, Register base, int64_t depth) const {
  if (!p.in_place) return {base, depth, llvm::Align(static_cast<uint64_t>(t_.lanes) * 4)};
  const DType dtype = kernel_.values[step.right].dtype;
  return {base, depth, llvm::Align(static_cast<uint64_t>(bytes_of(dtype))), dtype, t_.has_one_row() ? kFetchedAhead : 0};
}

AttentionParts::Sums AttentionParts::multiply(NarrowOperand narrow, WideOperand wide, int count, int vectors, Register steps, Register tail,
                                              Sums sums) {
  const RegisterBlock registers{b_, vector_, llvm::Align(4), count, vectors, tail};
  sums = registers.multiply(narrow, wide, b_.CreateUDiv(steps, i64(kDepthUnroll)), kDepthUnroll, std::move(sums));
  return registers.multiply(narrow, wide, b_.CreateURem(steps, i64(kDepthUnroll)), 1, std::move(sums));
}

}  // namespace einc
