// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/object_file.h"

#include <fmt/format.h>

#include "compiler/pipeline/cpu_program.h"
#include "runtime/base/printable.h"
#include "runtime/program/image.h"

namespace einc {
namespace {

std::string described(const TensorInfo& tensor) {
  std::string axes;
  for (size_t i = 0; i < tensor.axes.size(); ++i) {
    const std::string& name = tensor.axes[i];
    axes += fmt::format("{}{}{}{}", i > 0 ? " " : "", name, name.empty() ? "" : "=", tensor.shape[i]);
  }
  return printable(fmt::format("{}: {}[{}]", tensor.name, to_string(tensor.dtype), axes));
}

std::string list_of(const char* what, const std::vector<TensorInfo>& tensors) {
  constexpr size_t kShown = 200;
  std::string text;
  for (size_t i = 0; i < std::min(tensors.size(), kShown); ++i) text += fmt::format("//   {} {}\n", what, described(tensors[i]));
  if (tensors.size() > kShown) text += fmt::format("//   ... {} more {}s\n", tensors.size() - kShown, what);
  return text;
}

std::string header_of(const ProgramInfo& info, const std::string& stem, const std::string& cpu) {
  const std::string name = identifier(stem);
  std::string text = fmt::format("// {}, compiled ahead of time by einc for the processor \"{}\". Link {}.o and einc::runtime, and\n//   ",
                                 printable(info.name), printable(cpu), printable(stem));
  text += fmt::format("einc::Session session({}_program());\n// runs it{}. Its tensors:\n", name,
                      info.trains ? " (session.run()) and trains it (session.step())" : " (session.run())");
  text += list_of("input", info.inputs) + list_of("param", info.params) + list_of("state", info.states) + list_of("output", info.outputs);
  text += fmt::format(R"(#pragma once
#include <einc/runtime.h>

extern "C" const einc::CompiledObject einc_object_{0};

// Throws einc::Error (resource) on a processor that lacks what the code needs.
inline einc::Program {0}_program() {{ return einc::Program(einc_object_{0}); }}
)",
                      name);
  return text;
}

}  // namespace

std::string identifier(const std::string& stem) {
  std::string name;
  for (const char c : stem) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += letter ? c : '_';
  }
  return name.empty() || (name[0] >= '0' && name[0] <= '9') ? "model_" + name : name;
}

ObjectFile make_object(const ProgramGraphs& graphs, const std::string& stem, const std::string& cpu, const Processor& processor) {
  CpuOptions options;
  options.processor = processor;
  ProgramImage image{program_info(graphs), {}};
  std::vector<std::unique_ptr<LoweredGraph>> lowered;
  std::vector<const LoweredProgram*> programs;
  for (size_t p = 0; p < kParts; ++p) {
    const Part part = static_cast<Part>(p);
    if (!graphs.parts[part]) continue;
    options.mode = run_mode(part);
    lowered.push_back(lower_graph(*graphs.parts[part], graphs.dims, options));
    image.parts[part] = lowered.back()->lowered.program;
    programs.push_back(&lowered.back()->lowered);
  }
  return {object_of(programs, to_bytes(image), "einc_object_" + identifier(stem), cpu), header_of(image.info, stem, cpu)};
}

}  // namespace einc
