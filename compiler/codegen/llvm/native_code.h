// The functions of a lowered program as machine code of this processor, in memory. Code made once is found again in the
// cache, by the text of its kernels and all else that decides its bytes.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/llvm/engine.h"
#include "compiler/lower/make_program.h"
#include "runtime/base/file_cache.h"
#include "runtime/program/kernel_function.h"

namespace einc {

struct NativeCode {
  std::unique_ptr<LoadedCode> code;
  std::vector<KernelFunction*> functions;  // in the order of the program's functions
};

// What loops and tiles are planned for.
const Processor& native_processor();

NativeCode compile_native(const LoweredProgram& lowered, FileCache& cache);

// For --emit=llvm and --emit=asm.
std::string llvm_text_of(const LoweredProgram& lowered);
std::string assembly_of(const LoweredProgram& lowered);

}  // namespace einc
