// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/register_block.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

namespace einc {

using llvm::BasicBlock;
using Register = llvm::Value*;

Register RegisterBlock::at(Register base, int64_t elements) const {
  return b.CreateInBoundsGEP(vector->getElementType(), base, b.getInt64(static_cast<uint64_t>(elements)));
}

llvm::Type* RegisterBlock::stored(const WideOperand& wide) const {
  return wide.dtype == DType::bf16 ? storage_type(b.getContext(), wide.dtype) : vector->getElementType();
}

Register RegisterBlock::at(const WideOperand& wide, int64_t elements) const {
  return b.CreateInBoundsGEP(stored(wide), wide.base, b.getInt64(static_cast<uint64_t>(elements)));
}

Register RegisterBlock::load(const WideOperand& wide, int64_t elements, Register mask) const {
  llvm::Type* type = with_lanes_of(stored(wide), vector);
  Register from = at(wide, elements);
  if (wide.fetched_ahead > 0)
    prefetch(b, b.CreateConstGEP1_64(b.getInt8Ty(), from, static_cast<uint64_t>(wide.fetched_ahead)), Prefetch::into_first);
  Register x = mask ? static_cast<Register>(b.CreateMaskedLoad(type, from, llvm::Align(stored(wide)->getScalarSizeInBits() / 8), mask,
                                                               llvm::Constant::getNullValue(type)))
                    : b.CreateAlignedLoad(type, from, wide.align);
  return wide.dtype == DType::bf16 ? from_storage(b, x, wide.dtype) : x;
}

RegisterBlock::Sums RegisterBlock::repeat(Register count, Sums sums, const std::function<Sums(Register, Sums)>& body) const {
  BasicBlock* entry = b.GetInsertBlock();
  const auto block = [&](const char* name) { return BasicBlock::Create(b.getContext(), name, entry->getParent()); };
  BasicBlock *head = block("depth"), *inside = block("step"), *after = block("summed");
  b.CreateBr(head);
  b.SetInsertPoint(head);
  const auto phi = [&](Register x) {
    llvm::PHINode* node = b.CreatePHI(x->getType(), 2);
    node->addIncoming(x, entry);
    return node;
  };
  llvm::PHINode* i = phi(b.getInt64(0));
  std::vector<llvm::PHINode*> now;
  for (Register s : sums) now.push_back(phi(s));
  b.CreateCondBr(b.CreateICmpSLT(i, count), inside, after);
  b.SetInsertPoint(inside);
  const Sums next = body(i, {now.begin(), now.end()});
  BasicBlock* last = b.GetInsertBlock();
  i->addIncoming(b.CreateAdd(i, b.getInt64(1), "", true, true), last);
  for (size_t k = 0; k < next.size(); ++k) now[k]->addIncoming(next[k], last);
  b.CreateBr(head);
  b.SetInsertPoint(after);
  return {now.begin(), now.end()};
}

RegisterBlock::Sums RegisterBlock::loop(NarrowOperand& narrow, WideOperand& wide, Register count, Sums sums,
                                        const std::function<Sums(Register, Sums)>& body) const {
  sums.insert(sums.begin(), {narrow.base, wide.base});
  const auto take_operands = [&](Sums& all) {
    narrow.base = all[0], wide.base = all[1];
    all.erase(all.begin(), all.begin() + 2);
  };
  Sums done = repeat(count, std::move(sums), [&](Register i, Sums now) {
    take_operands(now);
    Sums next = body(i, std::move(now));
    next.insert(next.begin(), {narrow.base, wide.base});
    return next;
  });
  take_operands(done);
  return done;
}

RegisterBlock::Sums RegisterBlock::multiply(NarrowOperand& narrow, WideOperand& wide, Register steps, int unroll, Sums sums) const {
  return loop(narrow, wide, steps, std::move(sums), [&](Register, Sums now) {
    for (int t = 0; t < unroll; ++t) step(narrow, wide, t, now);
    narrow.base = at(narrow.base, narrow.depth * unroll);
    wide.base = at(wide, wide.depth * unroll);
    return now;
  });
}

RegisterBlock::Sums RegisterBlock::multiply_in_phases(NarrowOperand& narrow, WideOperand& wide, Register steps, int unroll, int64_t phases,
                                                      int64_t length, Sums sums, const std::function<void(Register)>& before) const {
  const auto number = [&](int64_t n) { return b.getInt64(static_cast<uint64_t>(n)); };
  return loop(narrow, wide, number(phases), std::move(sums), [&](Register phase, Sums now) {
    before(phase);
    Register left = b.CreateSub(steps, b.CreateMul(phase, number(length)));
    return multiply(narrow, wide, b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, number(length)), unroll, std::move(now));
  });
}

RegisterBlock::Sums RegisterBlock::multiply_in_groups(NarrowOperand& narrow, WideOperand& wide, Register count, int64_t steps, int unroll,
                                                      int64_t apart, Sums sums) const {
  return loop(narrow, wide, count, std::move(sums), [&](Register, Sums now) {
    now = multiply(narrow, wide, b.getInt64(static_cast<uint64_t>(steps)), unroll, std::move(now));
    narrow.base = at(narrow.base, apart - narrow.depth * steps * unroll);
    return now;
  });
}

Register RegisterBlock::add_product(Register x, Register y, Register sum) const {
  if (product == Product::of_elements) return b.CreateIntrinsic(llvm::Intrinsic::fma, {vector}, {x, y, sum});
  auto* pairs = llvm::FixedVectorType::get(b.getBFloatTy(), 2 * vector->getNumElements());
  return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {}, {sum, b.CreateBitCast(x, pairs), b.CreateBitCast(y, pairs)});
}

void RegisterBlock::step(const NarrowOperand& narrow, const WideOperand& wide, int t, Sums& sums) const {
  const auto lanes = vector->getNumElements();
  std::vector<Register> columns;
  const int64_t across = wide.across > 0 ? wide.across : lanes;
  for (int v = 0; v < vectors; ++v) columns.push_back(load(wide, t * wide.depth + v * across, v == vectors - 1 ? tail : nullptr));
  for (int r = 0; r < rows; ++r) {
    Register x = b.CreateAlignedLoad(vector->getElementType(), at(narrow.base, t * narrow.depth + r * narrow.row), element_align);
    Register everywhere = b.CreateVectorSplat(lanes, x);
    for (int v = 0; v < vectors; ++v) {
      Register& sum = sums[static_cast<size_t>(r * vectors + v)];
      sum = add_product(everywhere, columns[static_cast<size_t>(v)], sum);
    }
  }
}

}  // namespace einc
