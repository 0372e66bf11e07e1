// Tests that run generated CUDA use the emulated GPU, whatever the machine has.
#pragma once
#include <cstdlib>
#include <filesystem>

#include "runtime/base/file_cache.h"

namespace einc {

// To be called before anything of runtime/cuda is used.
inline void use_emulated_gpu() { setenv("EINC_CUDA_PATH", EINC_EMULATED_GPU, 1); }

// Of what the emulator compiled: beside the tests, so that a second run compiles nothing.
inline FileCache& emulated_cubins() {
  static FileCache cache(std::filesystem::path(EINC_EMULATED_GPU) / "cubins");
  return cache;
}

}  // namespace einc
