#include "compiler/codegen/llvm/register_block.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/Intrinsics.h>

namespace einc {

using llvm::BasicBlock;
using Register = llvm::Value*;

Register RegisterBlock::at(Register base, int64_t elements) const {
  return b.CreateInBoundsGEP(vector->getElementType(), base, b.getInt64(static_cast<uint64_t>(elements)));
}

RegisterBlock::Sums RegisterBlock::multiply(NarrowOperand& narrow, WideOperand& wide, Register steps, int unroll, Sums sums,
                                            const std::function<void(Register)>& before) const {
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
  llvm::PHINode *narrow_at = phi(narrow.base), *wide_at = phi(wide.base), *remaining = phi(steps);
  std::vector<llvm::PHINode*> now;
  for (Register s : sums) now.push_back(phi(s));
  b.CreateCondBr(b.CreateICmpSGT(remaining, b.getInt64(0)), inside, after);
  b.SetInsertPoint(inside);
  narrow.base = narrow_at, wide.base = wide_at;
  Sums next(now.begin(), now.end());
  if (before) before(remaining);
  for (int t = 0; t < unroll; ++t) step(narrow, wide, t, next);
  narrow_at->addIncoming(at(narrow_at, narrow.depth * unroll), inside);
  wide_at->addIncoming(at(wide_at, wide.depth * unroll), inside);
  remaining->addIncoming(b.CreateSub(remaining, b.getInt64(1)), inside);
  for (size_t k = 0; k < next.size(); ++k) now[k]->addIncoming(next[k], inside);
  b.CreateBr(head);
  b.SetInsertPoint(after);
  return {now.begin(), now.end()};
}

void RegisterBlock::step(const NarrowOperand& narrow, const WideOperand& wide, int t, Sums& sums) const {
  const auto lanes = vector->getNumElements();
  std::vector<Register> columns;
  for (int v = 0; v < vectors; ++v) {
    Register from = at(wide.base, t * wide.depth + int64_t{v} * lanes);
    if (tail && v == vectors - 1)
      columns.push_back(b.CreateMaskedLoad(vector, from, element_align, tail, llvm::Constant::getNullValue(vector)));
    else
      columns.push_back(b.CreateAlignedLoad(vector, from, wide.align));
  }
  for (int r = 0; r < rows; ++r) {
    Register x = b.CreateAlignedLoad(vector->getElementType(), at(narrow.base, t * narrow.depth + r * narrow.row), element_align);
    Register everywhere = b.CreateVectorSplat(lanes, x);
    for (int v = 0; v < vectors; ++v) {
      Register& sum = sums[static_cast<size_t>(r * vectors + v)];
      sum = b.CreateIntrinsic(llvm::Intrinsic::fma, {vector}, {everywhere, columns[static_cast<size_t>(v)], sum});
    }
  }
}

}  // namespace einc
