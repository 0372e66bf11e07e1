// Tests that run generated CUDA use the emulated GPU, whatever the machine has.
#pragma once
#include <cstdlib>
#include <filesystem>

#include "runtime/base/file_cache.h"

namespace einc {

// The folder of its libraries; EINC_EMULATED_GPU in the environment names another one, as of kernels under a sanitizer.
inline const char* emulated_gpu_folder() {
  const char* other = std::getenv("EINC_EMULATED_GPU");
  return other ? other : EINC_EMULATED_GPU;
}

// To be called before anything of runtime/cuda is used.
inline void use_emulated_gpu() { setenv("EINC_CUDA_PATH", emulated_gpu_folder(), 1); }

// Of what the emulator compiled: beside the tests, so that a second run compiles nothing.
inline FileCache& emulated_cubins() {
  static FileCache cache(std::filesystem::path(emulated_gpu_folder()) / "cubins");
  return cache;
}

}  // namespace einc
