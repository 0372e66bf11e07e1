// SPDX-License-Identifier: Apache-2.0
// An executor as part of a larger run: its launches stand among those of others, in one graph.
#include <algorithm>

#include "runtime/cuda/cuda_executor.h"

namespace einc {

// Launches that draw no numbers and look nothing up read none of it.
bool CudaExecutor::uses_control() const {
  bool uses = keys_ > 0;
  for (const Launch& launch : program().launches) uses = uses || launch.scan >= 0 || !launch.sites.empty();
  return uses;
}

void CudaExecutor::begin_parts(uint64_t seed, uint64_t step) { prepare(seed, step); }

void CudaExecutor::enqueue_begin() {
  if (uses_control()) upload_control();
}

void CudaExecutor::enqueue_launches(size_t first, size_t last) {
  for (size_t l = first; l < last; ++l)
    if (!is_collective(program().launches[l])) launch(l);
}

void CudaExecutor::enqueue_end() {
  if (uses_control()) read_control(staged().at_end);
}

void CudaExecutor::check_parts() { check_fault(staged().at_end); }

}  // namespace einc
