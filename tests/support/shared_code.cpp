#include "tests/support/shared_code.h"

#include <fmt/format.h>

#include <unordered_map>

namespace einc {

std::vector<std::vector<KernelFunction*>> shared_code(std::span<const LoweredProgram* const> programs) {
  static std::unordered_map<std::string, KernelFunction*> known;  // by text
  static std::vector<NativeCode> kept;
  LoweredProgram fresh;
  std::unordered_map<std::string, size_t> new_texts;  // to the place among the new functions
  for (const LoweredProgram* program : programs)
    for (const PlannedKernel& f : program->functions) {
      std::string text = f.text();
      if (known.contains(text) || !new_texts.emplace(std::move(text), fresh.functions.size()).second) continue;
      fresh.functions.push_back(f);
      fresh.functions.back().name = fmt::format("k{}", fresh.functions.size());
    }
  if (!fresh.functions.empty()) {
    FileCache none({});
    kept.push_back(compile_native(fresh, none));
    for (const auto& [text, place] : new_texts) known[text] = kept.back().functions[place];
  }
  std::vector<std::vector<KernelFunction*>> functions;
  for (const LoweredProgram* program : programs) {
    functions.emplace_back();
    for (const PlannedKernel& f : program->functions) functions.back().push_back(known.at(f.text()));
  }
  return functions;
}

}  // namespace einc
