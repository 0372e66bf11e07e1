// SPDX-License-Identifier: Apache-2.0
// The log of `ptxas -v`:
//   ptxas info    : Compiling entry function 'saxpy' for 'sm_90'
//   ptxas info    : Function properties for saxpy
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 10 registers, used 1 barriers, 1024 bytes smem
#include <cstdlib>
#include <sstream>

#include "runtime/cuda/cubin.h"

namespace einc::cuda {
namespace {

// The number in front of `word` in the line, else 0.
int number_before(const std::string& line, const std::string& word) {
  const size_t at = line.find(' ' + word);
  if (at == std::string::npos) return 0;
  size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  return begin == at ? 0 : std::atoi(line.c_str() + begin);
}

}  // namespace

std::vector<KernelUse> parse_kernel_use(const std::string& log) {
  std::vector<KernelUse> kernels;
  std::istringstream lines(log);
  constexpr const char* kEntry = "Compiling entry function '";
  bool of_entry = false;  // functions that are called have properties too
  for (std::string line; std::getline(lines, line);) {
    if (const size_t at = line.find(kEntry); at != std::string::npos) {
      const std::string rest = line.substr(at + std::string(kEntry).size());
      kernels.push_back({});
      kernels.back().name = rest.substr(0, rest.find('\''));
      of_entry = false;
    } else if (kernels.empty()) {
      continue;
    } else if (const size_t name = line.find("Function properties for "); name != std::string::npos) {
      of_entry = line.find(kernels.back().name, name) != std::string::npos;
    } else if (line.find("bytes stack frame") != std::string::npos && of_entry) {
      kernels.back().stack_bytes = number_before(line, "bytes stack frame");
      kernels.back().spill_store_bytes = number_before(line, "bytes spill stores");
      kernels.back().spill_load_bytes = number_before(line, "bytes spill loads");
    } else if (line.find("Used ") != std::string::npos) {
      kernels.back().registers = number_before(line, "registers");
      kernels.back().barriers = number_before(line, "barriers");
      kernels.back().shared_bytes = number_before(line, "bytes smem");
    }
  }
  return kernels;
}

}  // namespace einc::cuda
