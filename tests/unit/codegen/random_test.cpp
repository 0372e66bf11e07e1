// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/random.h"

#include <doctest/doctest.h>
#include <llvm/IR/Module.h>

#include <bit>
#include <memory>
#include <vector>

#include "compiler/codegen/llvm/cpu_target.h"
#include "compiler/codegen/llvm/engine.h"
#include "runtime/base/random.h"

using namespace einc;

namespace {

constexpr int kCount = 4096;

enum class Draw { one_by_one, in_blocks };

// void f(double* out, uint64_t key, uint64_t step, uint64_t first, uint64_t stride): kCount draws, `lanes` at a time.
std::unique_ptr<LoadedCode> draws(Engine& engine, RandomKind kind, double keep, unsigned lanes, Draw draw) {
  llvm::LLVMContext context;
  llvm::Module module("draws", context);
  CpuTarget::host().adopt(module);
  IrBuilder b(context);
  llvm::Type* word = b.getInt64Ty();
  llvm::Type* arguments[] = {b.getPtrTy(), word, word, word, word};
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), arguments, false), llvm::Function::ExternalLinkage, "f", module);
  auto* entry = llvm::BasicBlock::Create(context, "entry", f);
  auto* loop = llvm::BasicBlock::Create(context, "loop", f);
  auto* done = llvm::BasicBlock::Create(context, "done", f);
  b.SetInsertPoint(entry);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* i = b.CreatePHI(word, 2);
  i->addIncoming(b.getInt64(0), entry);
  llvm::Value* number = i;
  if (lanes > 1) {
    std::vector<llvm::Constant*> places;
    for (unsigned lane = 0; lane < lanes; ++lane) places.push_back(b.getInt64(lane));
    number = b.CreateAdd(b.CreateVectorSplat(lanes, i), llvm::ConstantVector::get(places));
  }
  const auto over_lanes = [&](llvm::Value* x) { return splat(b, x, static_cast<int>(lanes)); };
  llvm::Value* index = b.CreateAdd(b.CreateMul(number, over_lanes(f->getArg(4))), over_lanes(f->getArg(3)));
  llvm::Value* x = draw == Draw::one_by_one ? emit_random(b, kind, f->getArg(1), f->getArg(2), index, keep)
                                            : emit_random_blocks(b, kind, f->getArg(1), f->getArg(2), b.CreateAdd(i, f->getArg(3)),
                                                                 static_cast<int>(lanes), keep);
  if (kind == RandomKind::keep_mask || kind == RandomKind::bits) x = b.CreateUIToFP(x, with_lanes_of(b.getDoubleTy(), x->getType()));
  b.CreateAlignedStore(x, b.CreateGEP(b.getDoubleTy(), f->getArg(0), i), llvm::Align(8));
  llvm::Value* next = b.CreateAdd(i, b.getInt64(lanes));
  i->addIncoming(next, loop);
  b.CreateCondBr(b.CreateICmpULT(next, b.getInt64(kCount)), loop, done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
  CpuTarget::host().optimize(module);
  return engine.load(CpuTarget::host().object(module));
}

double expected(RandomKind kind, PhiloxKey key, uint64_t step, uint64_t index, double keep) {
  switch (kind) {
    case RandomKind::uniform:
      return random_uniform(key, step, index);
    case RandomKind::normal:
      return random_normal(key, step, index);
    case RandomKind::keep_mask:
      return random_keep(key, step, index, keep) ? 1 : 0;
    case RandomKind::bits:
      return static_cast<double>(random_bits(key, step, index));
    case RandomKind::gumbel:
      return random_gumbel(key, step, index);
  }
  return 0;
}

void check(RandomKind kind, double keep) {
  Engine engine({});
  const auto check_draws = [&](const LoadedCode& code, uint64_t step, uint64_t first, uint64_t stride) {
    const PhiloxKey key = random_key(step + 11, "h.0.drop");
    std::vector<double> out(kCount);
    code.function<void(double*, uint64_t, uint64_t, uint64_t, uint64_t)>("f")(out.data(), key[0] | uint64_t{key[1]} << 32, step, first,
                                                                              stride);
    int different = 0;
    for (uint64_t i = 0; i < kCount; ++i)
      different += std::bit_cast<uint64_t>(out[i]) != std::bit_cast<uint64_t>(expected(kind, key, step, first + i * stride, keep));
    CHECK(different == 0);
  };
  for (const unsigned lanes : {1u, 4u, 16u}) {
    const auto code = draws(engine, kind, keep, lanes, Draw::one_by_one);
    check_draws(*code, 0, 0, 1);
    check_draws(*code, 7, 3, 1);
    check_draws(*code, uint64_t{5} << 40, (uint64_t{1} << 34) - 1000, 1);
    check_draws(*code, 1, 2, 12345677);
  }
  for (const unsigned lanes : {8u, 16u, 32u, 64u}) {
    const auto code = draws(engine, kind, keep, lanes, Draw::in_blocks);
    check_draws(*code, 0, 0, 1);
    check_draws(*code, uint64_t{5} << 40, (uint64_t{1} << 34) - 1000, 1);
  }
}

}  // namespace

TEST_CASE("random: generated code draws the same bits: uniform") { check(RandomKind::uniform, 0); }

TEST_CASE("random: generated code draws the same bits: normal") { check(RandomKind::normal, 0); }

TEST_CASE("random: generated code draws the same bits: bits") { check(RandomKind::bits, 0); }

TEST_CASE("random: generated code draws the same bits: gumbel") { check(RandomKind::gumbel, 0); }

TEST_CASE("random: generated code draws the same bits: keep_mask") {
  for (const double keep : {0.9, 0.5, 0.1234567890123, 0x1p-24, 1.0, 0.0}) check(RandomKind::keep_mask, keep);
}
