// SPDX-License-Identifier: Apache-2.0
// The functions of a lowered program as machine code of this processor, in memory. Functions that this process has already are shared;
// code made once for others is found again in the cache, by the text of its kernels and all else that decides its bytes.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/llvm/engine.h"
#include "compiler/lower/make_program.h"
#include "runtime/base/file_cache.h"
#include "runtime/program/kernel_function.h"

namespace einc {

struct NativeCode {
  std::vector<std::shared_ptr<const LoadedCode>> code;  // all that the functions lie in
  std::vector<KernelFunction*> functions;               // in the order of the program's functions
};

// What loops and tiles are planned for.
const Processor& native_processor();

NativeCode compile_native(const LoweredProgram& lowered, FileCache& cache);

// What loops and tiles are planned for on a processor of LLVM's name, or "host"; nullopt when code cannot be made for it.
std::optional<Processor> processor_named(const std::string& cpu);

// An object file for a processor: the functions of all programs, one after another, and `symbol`, an einc::CompiledObject that
// names them and holds the image. The programs were planned for that processor.
std::string object_of(const std::vector<const LoweredProgram*>& programs, const std::string& image, const std::string& symbol,
                      const std::string& cpu);

// For --emit=llvm and --emit=asm.
std::string llvm_text_of(const LoweredProgram& lowered);
std::string assembly_of(const LoweredProgram& lowered);

}  // namespace einc
