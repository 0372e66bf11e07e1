// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/native_code.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "compiler/codegen/llvm/cpu_target.h"
#include "compiler/codegen/llvm/emit_function.h"
#include "compiler/codegen/llvm/emitter_hash.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

std::unique_ptr<llvm::Module> emit(const LoweredProgram& lowered, llvm::LLVMContext& context) {
  auto module = std::make_unique<llvm::Module>("kernels", context);
  CpuTarget::host().adopt(*module);
  for (const PlannedKernel& f : lowered.functions) emit_function(*module, f.name, f);
  CpuTarget::host().optimize(*module);
  return module;
}

std::string key_of(const LoweredProgram& lowered) {
  std::string key = std::string(emitter_hash()) + "\n" + CpuTarget::host().key() + "\n";
  for (const PlannedKernel& f : lowered.functions) key += f.name + "\n" + f.text();
  return key;
}

Engine& engine() {
  static const EngineSymbol symbols[] = {{kIndexFaultSymbol, reinterpret_cast<const void*>(&einc_index_fault)}};
  static Engine instance(symbols);
  return instance;
}

NativeCode link(const std::string& object, const LoweredProgram& lowered) {
  NativeCode native;
  native.code = engine().load(object);
  for (const PlannedKernel& f : lowered.functions) native.functions.push_back(native.code->function<KernelFunction>(f.name));
  return native;
}

}  // namespace

const Processor& native_processor() { return CpuTarget::host().processor(); }

NativeCode compile_native(const LoweredProgram& lowered, FileCache& cache) {
  const std::string key = key_of(lowered);
  if (const std::optional<std::string> cached = cache.load(key)) {
    try {
      return link(*cached, lowered);
    } catch (const InternalError&) {  // sealed, but no object of these functions: it is compiled anew
    }
  }
  llvm::LLVMContext context;
  const std::string object = CpuTarget::host().object(*emit(lowered, context));
  cache.store(key, object);
  return link(object, lowered);
}

std::string llvm_text_of(const LoweredProgram& lowered) {
  llvm::LLVMContext context;
  return llvm_text(*emit(lowered, context));
}

std::string assembly_of(const LoweredProgram& lowered) {
  llvm::LLVMContext context;
  return CpuTarget::host().assembly(*emit(lowered, context));
}

}  // namespace einc
