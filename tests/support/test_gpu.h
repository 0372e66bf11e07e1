// SPDX-License-Identifier: Apache-2.0
// The GPU that generated CUDA is tested on: the emulated one, whatever the machine has, unless EINC_TEST_GPU=real asks for the machine's.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "runtime/base/file_cache.h"

namespace einc {

inline bool tests_real_gpu() {
  const char* asked = std::getenv("EINC_TEST_GPU");
  return asked && std::string_view(asked) == "real";
}

// The folder of its libraries; EINC_EMULATED_GPU in the environment names another one, as of kernels under a sanitizer.
inline const char* emulated_gpu_folder() {
  const char* other = std::getenv("EINC_EMULATED_GPU");
  return other ? other : EINC_EMULATED_GPU;
}

// To be called before anything of runtime/cuda is used.
inline void use_test_gpu() {
  if (!tests_real_gpu()) setenv("EINC_CUDA_PATH", emulated_gpu_folder(), 1);
}

// Of kernels that tests compiled; the emulator's lie beside the tests, so that a second run compiles nothing.
inline std::filesystem::path test_cubin_folder() {
  namespace fs = std::filesystem;
  return tests_real_gpu() ? fs::temp_directory_path() / "einc_test_cubins" : fs::path(emulated_gpu_folder()) / "cubins";
}
inline FileCache& test_cubins() {
  static FileCache cache(test_cubin_folder());
  return cache;
}

}  // namespace einc
