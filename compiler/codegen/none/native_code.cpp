// SPDX-License-Identifier: Apache-2.0
// An einc without LLVM: it compiles and reports as ever, and says what is missing when machine code is asked for.
#include "compiler/codegen/llvm/native_code.h"
#include "runtime/base/failure.h"

namespace einc {
namespace {

[[noreturn]] void refuse() {
  throw RuntimeFailure(FailureKind::resource, "this einc was built without LLVM (EINC_WITH_LLVM=OFF): it makes no code for processors");
}

}  // namespace

struct LoadedCode::Impl {};
LoadedCode::~LoadedCode() = default;

const Processor& native_processor() {
  static const Processor processor;
  return processor;
}

NativeCode compile_native(const LoweredProgram&, FileCache&) { refuse(); }
std::optional<Processor> processor_named(const std::string& cpu) {
  return cpu == "host" ? std::optional(native_processor()) : std::nullopt;
}

std::string object_of(const std::vector<const LoweredProgram*>&, const std::string&, const std::string&, const std::string&) { refuse(); }
std::string llvm_text_of(const LoweredProgram&) { refuse(); }
std::string assembly_of(const LoweredProgram&) { refuse(); }

}  // namespace einc
