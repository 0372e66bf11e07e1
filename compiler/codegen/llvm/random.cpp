#include "compiler/codegen/llvm/random.h"
#include "runtime/base/check.h"
namespace einc {
llvm::Value* emit_random(IrBuilder&, RandomKind, llvm::Value*, llvm::Value*, llvm::Value*, double) { EINC_CHECK(false, "random"); }
}  // namespace einc
