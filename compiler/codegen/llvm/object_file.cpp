// SPDX-License-Identifier: Apache-2.0
// Object files that programs link with: functions, their table, and the program's image as constants. Only the one symbol that
// names them is seen from outside, so any number of such objects may stand in one program.
#include <llvm/IR/Constants.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <map>

#include "compiler/codegen/llvm/cpu_target.h"
#include "compiler/codegen/llvm/emit_function.h"
#include "compiler/codegen/llvm/native_code.h"
#include "runtime/base/check.h"
#include "runtime/program/image.h"

namespace einc {
namespace {

class ObjectBuilder {
 public:
  explicit ObjectBuilder(const CpuTarget& target) : target_(target), module_("kernels", context_) { target.adopt(module_); }

  // Equal kernels of all programs become one function.
  void add(const PlannedKernel& f) {
    const auto [entry, fresh] = names_.emplace(f.text(), fmt::format("k{}", names_.size()));
    const std::string& name = entry->second;
    if (fresh) {
      emit_function(module_, name, f);
      module_.getFunction(name)->setLinkage(llvm::GlobalValue::InternalLinkage);
    }
    functions_.push_back(module_.getFunction(name));
  }

  // The layout of einc::CompiledObject.
  std::string finish(const std::string& image, const std::string& symbol) {
    llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
    llvm::Type* word = llvm::Type::getInt64Ty(context_);
    const auto number = [&](uint64_t x) { return llvm::ConstantInt::get(word, x); };
    const auto table = llvm::ArrayType::get(pointer, functions_.size());
    llvm::Constant* fields[] = {llvm::ConstantInt::get(llvm::Type::getInt32Ty(context_), kObjectVersion),
                                hold(llvm::ConstantDataArray::getString(context_, target_.required_features())),
                                hold(llvm::ConstantDataArray::getString(context_, image, /*AddNull=*/false)),
                                number(image.size()),
                                hold(llvm::ConstantArray::get(table, functions_)),
                                number(functions_.size())};
    llvm::Constant* object = llvm::ConstantStruct::getAnon(context_, fields);
    new llvm::GlobalVariable(module_, object->getType(), /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage, object, symbol);
    target_.optimize(module_);
    return target_.object(module_);
  }

 private:
  llvm::GlobalVariable* hold(llvm::Constant* value) {
    return new llvm::GlobalVariable(module_, value->getType(), /*isConstant=*/true, llvm::GlobalValue::InternalLinkage, value);
  }

  const CpuTarget& target_;
  llvm::LLVMContext context_;
  llvm::Module module_;
  std::map<std::string, std::string> names_;  // by text
  std::vector<llvm::Constant*> functions_;
};

}  // namespace

std::optional<Processor> processor_named(const std::string& cpu) {
  const std::optional<CpuTarget> target = CpuTarget::named(cpu);
  return target ? std::optional(target->processor()) : std::nullopt;
}

std::string object_of(const std::vector<const LoweredProgram*>& programs, const std::string& image, const std::string& symbol,
                      const std::string& cpu) {
  const std::optional<CpuTarget> target = CpuTarget::named(cpu);
  EINC_CHECK(target.has_value(), "no code can be made for '{}'", cpu);
  ObjectBuilder builder(*target);
  for (const LoweredProgram* program : programs)
    for (const PlannedKernel& f : program->functions) builder.add(f);
  return builder.finish(image, symbol);
}

}  // namespace einc
