// SPDX-License-Identifier: Apache-2.0
#include <einc/runtime.h>

#include "runtime/api/guard.h"
#include "runtime/cpu/cpu_features.h"
#include "runtime/executor/native_program.h"
#include "runtime/program/image.h"

namespace einc {
namespace {

NativePart take_part(Executable program, std::span<void (*const)()>& functions) {
  NativePart part{std::move(program), {}};
  if (functions.size() < part.program.functions.size())
    throw RuntimeFailure(FailureKind::data, "the compiled program has too few functions");
  for (void (*function)() : functions.first(part.program.functions.size()))
    part.functions.push_back(reinterpret_cast<KernelFunction*>(function));
  functions = functions.subspan(part.program.functions.size());
  return part;
}

std::shared_ptr<const ProgramRep> load(const CompiledObject& object) {
  if (object.version != kObjectVersion)
    throw RuntimeFailure(
        FailureKind::resource,
        fmt::format("the compiled program is of version {}, this library of version {}: compile it anew", object.version, kObjectVersion));
  if (object.features == nullptr || object.image == nullptr || (object.functions == nullptr && object.function_count > 0))
    throw Error(ErrorKind::usage, "the compiled object lacks a part");
  ProgramImage image = parse_image({reinterpret_cast<const char*>(object.image), object.image_bytes});
  if (const std::string missing = missing_cpu_features(object.features); !missing.empty())
    throw RuntimeFailure(FailureKind::resource,
                         fmt::format("'{}' was compiled for a processor with features that this one lacks: {}. Compile it here, or "
                                     "with --cpu=x86-64-v3 for any processor with AVX2",
                                     image.info.name, missing));
  std::span<void (*const)()> functions(object.functions, object.function_count);
  PerPart<NativePart> parts;
  for (size_t p = 0; p < kParts; ++p)
    if (auto& part = image.parts[static_cast<Part>(p)]) parts[static_cast<Part>(p)] = take_part(std::move(*part), functions);
  return std::make_shared<NativeProgram>(std::move(image.info), std::move(parts));
}

}  // namespace

Program::Program(const CompiledObject& object) : rep_(guarded([&] { return load(object); })) {}

const ProgramRep& Program::rep() const {
  if (!rep_) throw Error(ErrorKind::usage, "the program was moved from");
  return *rep_;
}

const std::string& Program::name() const { return rep().info.name; }
const std::vector<std::pair<std::string, int64_t>>& Program::dims() const { return rep().info.dims; }
const std::vector<TensorInfo>& Program::inputs() const { return rep().info.inputs; }
const std::vector<TensorInfo>& Program::params() const { return rep().info.params; }
const std::vector<TensorInfo>& Program::states() const { return rep().info.states; }
const std::vector<TensorInfo>& Program::outputs() const { return rep().info.outputs; }
bool Program::trains() const { return rep().info.trains; }

}  // namespace einc
