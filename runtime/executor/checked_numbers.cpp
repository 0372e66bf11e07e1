// SPDX-License-Identifier: Apache-2.0
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

std::vector<CheckedNumber> checked_numbers(const Executable& program) {
  std::vector<CheckedNumber> numbers;
  for (const FiniteCheck& check : program.checks) numbers.push_back({check.means, check.buffer, first_launch(program, check.buffer)});
  return numbers;
}

}  // namespace einc
