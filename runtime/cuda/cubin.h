// SPDX-License-Identifier: Apache-2.0
// CUDA C++ to machine code by NVRTC, kept on disk under everything that it follows from. Needs no GPU.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/base/file_cache.h"

namespace einc::cuda {

// What a kernel takes of the GPU, as the assembler says.
struct KernelUse {
  std::string name;
  int registers = 0, barriers = 0;
  int stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;
  int shared_bytes = 0;  // static
  bool operator==(const KernelUse&) const = default;
};

struct Cubin {
  std::string code;
  std::vector<KernelUse> kernels;
};

// What NVRTC is to make for a GPU of the arch "sm_XY": machine code, or, where it is older than the GPU, PTX of the newest arch that it
// knows, "compute_ZW", which the GPU's driver makes code of.
std::string code_for(const std::string& arch);

// `arch`: "sm_90", or "compute_90" for PTX in the place of machine code. Throws RuntimeFailure (resource) without NVRTC or when NVRTC does
// not know the arch; InternalError, with the compiler's log, when it refuses the text.
Cubin compile_cubin(const std::string& text, const std::string& arch, FileCache& cache);
// PTX of the text, for people.
std::string compile_ptx(const std::string& text, const std::string& arch);

// The functions in groups, each with the prelude, on so many threads. Cubins in the order of the groups; which group function f is in:
// f / kFunctionsPerCubin.
inline constexpr size_t kFunctionsPerCubin = 8;
std::vector<Cubin> compile_cubins(const std::string& prelude, std::span<const std::string> texts, const std::string& arch, FileCache& cache,
                                  int threads);

// From the log of `ptxas -v`.
std::vector<KernelUse> parse_kernel_use(const std::string& log);

}  // namespace einc::cuda
