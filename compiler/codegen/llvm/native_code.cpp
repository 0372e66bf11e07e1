// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/native_code.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <span>
#include <thread>

#include "compiler/codegen/llvm/cpu_target.h"
#include "compiler/codegen/llvm/emit_function.h"
#include "compiler/codegen/llvm/emitter_hash.h"
#include "compiler/codegen/llvm/loaded_functions.h"
#include "runtime/base/check.h"
#include "runtime/base/on_threads.h"

namespace einc {
namespace {

// Of code that no program has any more: GPT-2's step at 12 layers is an object of 294 kB.
constexpr size_t kKeptBytes = 64 << 20;

// What a thread compiles at once. GPT-2's 63 functions take 0.94 s of one thread in one piece, 1.03 s by 8, and 1.29 s one by one (Zen 4).
constexpr size_t kFunctionsPerObject = 8;

struct Missing {
  size_t index;  // in its program
  const PlannedKernel* kernel;
  std::string text;
};

std::unique_ptr<llvm::Module> emit(const auto& kernels, llvm::LLVMContext& context) {
  auto module = std::make_unique<llvm::Module>("kernels", context);
  CpuTarget::host().adopt(*module);
  for (const PlannedKernel& f : kernels) emit_function(*module, f.name, f);
  CpuTarget::host().optimize(*module);
  return module;
}

std::string object_of(std::span<const Missing> missing) {
  llvm::LLVMContext context;
  return CpuTarget::host().object(
      *emit(std::views::transform(missing, [](const Missing& m) -> const PlannedKernel& { return *m.kernel; }), context));
}

std::string key_of(std::span<const Missing> missing) {
  std::string key = std::string(emitter_hash()) + "\n" + CpuTarget::host().key() + "\n";
  for (const Missing& m : missing) key += m.kernel->name + "\n" + m.text;
  return key;
}

Engine& engine() {
  static const EngineSymbol symbols[] = {{kIndexFaultSymbol, reinterpret_cast<const void*>(&einc_index_fault)}};
  static Engine instance(symbols);
  return instance;
}

LoadedFunctions& loaded_functions() {
  static LoadedFunctions instance(kKeptBytes);
  return instance;
}

// Of all functions that are missing; an InternalError where the object lacks one.
std::shared_ptr<const LoadedCode> load(const std::string& object, std::span<const Missing> missing) {
  std::shared_ptr<const LoadedCode> code = engine().load(object);
  std::vector<LoadedFunctions::Named> names;
  for (const Missing& m : missing) names.push_back({m.kernel->name, m.text});
  loaded_functions().add(code, object.size(), names);
  return code;
}

std::shared_ptr<const LoadedCode> make(std::span<const Missing> missing, FileCache& cache) {
  const std::string key = key_of(missing);
  if (const std::optional<std::string> cached = cache.load(key)) {
    try {
      return load(*cached, missing);
    } catch (const InternalError&) {  // sealed, but no object of these functions: it is compiled anew
    }
  }
  const std::string object = object_of(missing);
  cache.store(key, object);
  return load(object, missing);
}

}  // namespace

const Processor& native_processor() { return CpuTarget::host().processor(); }

// Two threads that miss a function at once both compile it, and either's code will do: no lock is held while LLVM works. What is cached is
// what was missing, so that a program finds its pieces again when it is compiled behind the same ones as before.
NativeCode compile_native(const LoweredProgram& lowered, FileCache& cache) {
  NativeCode native;
  std::vector<Missing> missing;
  for (const PlannedKernel& f : lowered.functions) {
    std::string text = f.text();
    const std::optional<LoadedFunction> known = loaded_functions().find(text);
    native.functions.push_back(known ? known->function : nullptr);
    if (!known)
      missing.push_back({native.functions.size() - 1, &f, std::move(text)});
    else if (std::ranges::find(native.code, known->code) == native.code.end())
      native.code.push_back(known->code);
  }
  std::vector<std::shared_ptr<const LoadedCode>> pieces((missing.size() + kFunctionsPerObject - 1) / kFunctionsPerObject);
  on_threads(pieces.size(), static_cast<int>(std::thread::hardware_concurrency()), [&](size_t p) {
    const auto rest = std::span(missing).subspan(p * kFunctionsPerObject);
    pieces[p] = make(rest.first(std::min(kFunctionsPerObject, rest.size())), cache);
  });
  for (size_t i = 0; i < missing.size(); ++i)
    native.functions[missing[i].index] = pieces[i / kFunctionsPerObject]->function<KernelFunction>(missing[i].kernel->name);
  std::ranges::move(pieces, std::back_inserter(native.code));
  return native;
}

std::string llvm_text_of(const LoweredProgram& lowered) {
  llvm::LLVMContext context;
  return llvm_text(*emit(lowered.functions, context));
}

std::string assembly_of(const LoweredProgram& lowered) {
  llvm::LLVMContext context;
  return CpuTarget::host().assembly(*emit(lowered.functions, context));
}

}  // namespace einc
