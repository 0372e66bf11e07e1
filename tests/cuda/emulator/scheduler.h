// SPDX-License-Identifier: Apache-2.0
// Runs the threads of a kernel that was compiled for the host: one block at a time, one fiber per thread.
#pragma once
#include <cstddef>
#include <string>

#include "emulated_thread.h"

namespace emulator {

// In which order blocks and the threads of a block go: 0 ascending, 1 descending, from 2 shuffled by that seed.
using Order = unsigned;

struct Shape {
  EmuDim grid, block;
  size_t shared_bytes = 0;  // dynamic
};

// What went wrong, empty when nothing did: "block (0, 0, 0): __syncthreads reached at different places".
std::string run_kernel(const Shape& shape, EmuShared static_shared, Order order, EmuCall* call, void** arguments);
// To bind kernels to.
const EmuScheduler* scheduler();

}  // namespace emulator
