// Params and states of an executor on a GPU as their initialisers say.
#pragma once
#include <cstdint>

#include "runtime/cuda/cuda_executor.h"

namespace einc {

void initialize(CudaExecutor& executor, uint64_t seed);

}  // namespace einc
