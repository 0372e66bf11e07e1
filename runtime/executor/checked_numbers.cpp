#include "runtime/executor/checked_numbers.h"

#include <algorithm>

namespace einc {

int64_t first_launch(const Executable& program, uint32_t buffer) {
  for (size_t l = 0; l < program.launches.size(); ++l) {
    const std::vector<uint32_t>& buffers = program.launches[l].buffers;
    if (std::find(buffers.begin(), buffers.end(), buffer) != buffers.end()) return static_cast<int64_t>(l);
  }
  return -1;
}

std::vector<CheckedNumber> checked_numbers(const ProgramInfo& info, Part part, const Executable& program) {
  std::vector<CheckedNumber> numbers;
  const auto check = [&](NonFinite means, uint32_t buffer) { numbers.push_back({means, buffer, first_launch(program, buffer)}); };
  if (program.loss >= 0) check(NonFinite::loss, static_cast<uint32_t>(program.loss));
  if (part == Part::training)
    for (const uint32_t norm : gradient_norms(info)) check(NonFinite::gradient, program.outputs[norm].buffer);
  return numbers;
}

}  // namespace einc
