// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/matrix_tiles.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>

namespace einc {
namespace {

llvm::ConstantInt* number_of(IrBuilder& b, int tile) { return b.getInt8(static_cast<uint8_t>(tile)); }
llvm::ConstantInt* stride(IrBuilder& b, int64_t pitch) { return b.getInt64(static_cast<uint64_t>(pitch)); }

}  // namespace

void MatrixTiles::configure(llvm::Module& module) const {
  constexpr size_t kSettingBytes = 64, kRowBytesAt = 16, kRowsAt = 48;
  std::vector<uint8_t> bytes(kSettingBytes, 0);
  bytes[0] = 1;
  for (size_t r = 0; r < 8; ++r) bytes[kRowBytesAt + 2 * r] = kRowBytes, bytes[kRowsAt + r] = kRows;
  llvm::Constant* content = llvm::ConstantDataArray::get(b.getContext(), bytes);
  auto* setting = new llvm::GlobalVariable(module, content->getType(), true, llvm::GlobalValue::PrivateLinkage, content, "tiles");
  b.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {setting});
}

void MatrixTiles::release() const { b.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {}); }

void MatrixTiles::clear(int tile) const { b.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {number_of(b, tile)}); }

void MatrixTiles::load(int tile, llvm::Value* from, int64_t pitch) const {
  b.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {}, {number_of(b, tile), from, stride(b, pitch)});
}

void MatrixTiles::load_passing(int tile, llvm::Value* from, int64_t pitch) const {
  b.CreateIntrinsic(llvm::Intrinsic::x86_tileloaddt164, {}, {number_of(b, tile), from, stride(b, pitch)});
}

void MatrixTiles::store(int tile, llvm::Value* to, int64_t pitch) const {
  b.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64, {}, {number_of(b, tile), to, stride(b, pitch)});
}

void MatrixTiles::multiply(int down, int across) const {
  for (int r = 0; r < down; ++r)
    for (int c = 0; c < across; ++c)
      b.CreateIntrinsic(llvm::Intrinsic::x86_tdpbf16ps, {}, {number_of(b, 2 * r + c), number_of(b, 4 + r), number_of(b, 6 + c)});
}

}  // namespace einc
