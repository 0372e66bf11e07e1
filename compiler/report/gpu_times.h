// SPDX-License-Identifier: Apache-2.0
// How long the units of a GPU take over a launch: tensor cores, shared memory, special functions and issue slots, from the kernel's work
// and the machine's rates. What the rates leave out (a library's pipelines that fill, waves of blocks, warps that multiply by themselves)
// is here; what others measured stands in the device's row. Nothing in it is fitted to a program.
#pragma once
#include "compiler/cost/device.h"
#include "compiler/gpu_plan/gpu_plan.h"
#include "compiler/lower/kernel.h"
#include "compiler/lower/kernel_work.h"
#include "compiler/lower/library_calls.h"

namespace einc {

struct GpuTimes {
  double products = 0, vector = 0;  // seconds of multiplications, and of all that is computed besides
  bool by_turns = false;            // a warp does one after the other
};

// `plan`: of the kernel, where one was made. `product`: what a library does in its place, or none. `peak`, `vector_peak`: FLOP/s of the
// kernel's number format.
GpuTimes gpu_times(const Kernel& kernel, const GpuPlan* plan, const KernelWork& work, const LibraryProduct* product, const Device& device,
                   double peak, double vector_peak);

}  // namespace einc
