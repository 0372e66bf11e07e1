// SPDX-License-Identifier: Apache-2.0
#include "tests/support/shared_code.h"

#include <fmt/format.h>

#include <unordered_map>

namespace einc {
namespace {

void mark_functions(const Executable& program, std::vector<bool>& wanted) {
  for (const Launch& launch : program.launches)
    if (launch.scan < 0 && launch.when != LaunchWhen::unbounded) wanted[launch.function] = true;
  for (const ScanProgram& scan : program.scans) mark_functions(scan.body, wanted);
}

}  // namespace

std::vector<std::vector<KernelFunction*>> shared_code(std::span<const LoweredProgram* const> programs) {
  static std::unordered_map<std::string, KernelFunction*> known;  // by text
  static std::vector<NativeCode> kept;
  LoweredProgram fresh;
  std::unordered_map<std::string, size_t> new_texts;  // to the place among the new functions
  std::vector<std::vector<bool>> wanted;
  for (const LoweredProgram* program : programs) {
    wanted.emplace_back(program->functions.size(), program == programs.front());
    mark_functions(program->program, wanted.back());
    for (size_t i = 0; i < program->functions.size(); ++i) {
      if (!wanted.back()[i]) continue;
      const PlannedKernel& f = program->functions[i];
      std::string text = f.text();
      if (known.contains(text) || !new_texts.emplace(std::move(text), fresh.functions.size()).second) continue;
      fresh.functions.push_back(f);
      fresh.functions.back().name = fmt::format("k{}", fresh.functions.size());
    }
  }
  if (!fresh.functions.empty()) {
    FileCache none({});
    kept.push_back(compile_native(fresh, none));
    for (const auto& [text, place] : new_texts) known[text] = kept.back().functions[place];
  }
  std::vector<std::vector<KernelFunction*>> functions;
  for (size_t p = 0; p < programs.size(); ++p) {
    functions.emplace_back();
    for (size_t i = 0; i < wanted[p].size(); ++i)
      functions.back().push_back(wanted[p][i] ? known.at(programs[p]->functions[i].text()) : nullptr);
  }
  return functions;
}

}  // namespace einc
