// SPDX-License-Identifier: Apache-2.0
// Proves that a GPU's launches leave the values that the kernel list makes, whichever way they run: launches joined into one run at once,
// a product with an epilogue or a plug-in's attention does the work of several at another's place.
#pragma once
#include <string>

#include "compiler/lower/kernel_list.h"
#include "runtime/cuda/cuda_executable.h"

namespace einc {

// "" or the first value that some way loses. `list` is what the executable was made from.
std::string verify_launches(const CudaExecutable& executable, const KernelList& list);

}  // namespace einc
