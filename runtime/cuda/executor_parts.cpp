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

void CudaExecutor::begin_parts(uint64_t seed, std::span<const uint64_t> steps) {
  prepare(seed, 0);
  if (steps.size() != parts_) {
    parts_ = steps.size();
    staged_parts_ = cuda::allocate_host(static_cast<int64_t>(parts_ * sizeof(StagedPart)));
  }
  for (size_t run = 0; run < parts_; ++run) {
    new (&staged_part(run)) StagedPart;
    staged_part(run).before.step = steps[run];
  }
}

void CudaExecutor::enqueue_begin(size_t run) {
  if (uses_control()) upload_control(staged_part(run).before);
}

void CudaExecutor::enqueue_launches(size_t first, size_t last) {
  for (size_t l = first; l < last; ++l)
    if (!is_collective(program().launches[l])) launch(l);
}

void CudaExecutor::enqueue_looks(size_t before) {
  for (const CheckedNumber& check : checked_numbers(program()))
    if (check.launch < static_cast<int64_t>(before)) read_numbers({check.buffer});
}

NonFinite CudaExecutor::fault_before(size_t launch) {
  return einc::fault_before(program(), launch, [this](uint32_t buffer) { return read(buffer); });
}

void CudaExecutor::enqueue_copies(size_t first, size_t last) {
  for (const BufferCopy& copy : program().copies)
    if (const size_t made = last_launch_of(program(), copy.value); first <= made && made < last) copy_all({copy});
}

void CudaExecutor::enqueue_end(size_t run) {
  if (uses_control()) read_control(staged_part(run).at_end);
}

void CudaExecutor::check_parts() {
  for (size_t run = 0; run < parts_; ++run) check_fault(staged_part(run).at_end);
}

}  // namespace einc
