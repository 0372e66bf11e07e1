// SPDX-License-Identifier: Apache-2.0
// Functions over arrays, made by the engine from an emitter of one vector's worth.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <memory>
#include <vector>

#include "compiler/codegen/llvm/cpu_target.h"
#include "compiler/codegen/llvm/engine.h"

namespace einc {

using EmitLanes = std::function<llvm::Value*(llvm::IRBuilder<>&, std::vector<llvm::Value*>)>;

// void f(T* out, const T* a, const T* b, int64_t n): out[i] = emit(a[i], b[i]), `lanes` numbers at a time (1: scalars); n is a
// multiple of lanes.
template <class T>
class ArrayKernel {
 public:
  ArrayKernel(Engine& engine, unsigned lanes, const EmitLanes& emit) {
    llvm::LLVMContext context;
    llvm::Module module("kernel", context);
    CpuTarget::host().adopt(module);
    llvm::IRBuilder<> builder(context);
    llvm::Type* scalar = sizeof(T) == 4 ? builder.getFloatTy() : builder.getDoubleTy();
    llvm::Type* type = lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, lanes);
    llvm::Type* pointer = builder.getPtrTy();
    llvm::Type* arguments[] = {pointer, pointer, pointer, builder.getInt64Ty()};
    llvm::Function* f = llvm::Function::Create(llvm::FunctionType::get(builder.getVoidTy(), arguments, false),
                                               llvm::Function::ExternalLinkage, "f", module);
    for (unsigned i = 0; i < 3; ++i) f->addParamAttr(i, llvm::Attribute::NoAlias);
    auto* entry = llvm::BasicBlock::Create(context, "entry", f);
    auto* loop = llvm::BasicBlock::Create(context, "loop", f);
    auto* done = llvm::BasicBlock::Create(context, "done", f);
    builder.SetInsertPoint(entry);
    builder.CreateBr(loop);
    builder.SetInsertPoint(loop);
    llvm::PHINode* i = builder.CreatePHI(builder.getInt64Ty(), 2);
    i->addIncoming(builder.getInt64(0), entry);
    std::vector<llvm::Value*> operands;
    for (unsigned k : {1u, 2u})
      operands.push_back(builder.CreateAlignedLoad(type, builder.CreateGEP(scalar, f->getArg(k), i), llvm::Align(sizeof(T))));
    builder.CreateAlignedStore(emit(builder, operands), builder.CreateGEP(scalar, f->getArg(0), i), llvm::Align(sizeof(T)));
    llvm::Value* next = builder.CreateAdd(i, builder.getInt64(lanes));
    i->addIncoming(next, builder.GetInsertBlock());
    builder.CreateCondBr(builder.CreateICmpSLT(next, f->getArg(3)), loop, done);
    builder.SetInsertPoint(done);
    builder.CreateRetVoid();
    CpuTarget::host().optimize(module);
    code_ = engine.load(CpuTarget::host().object(module));
  }

  void run(T* out, const T* a, const T* b, int64_t n) const {
    code_->template function<void(T*, const T*, const T*, int64_t)>("f")(out, a, b, n);
  }

 private:
  std::unique_ptr<LoadedCode> code_;
};

}  // namespace einc
