// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_machine.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "runtime/base/failure.h"
#include "runtime/cuda/algorithm_table.h"
#include "runtime/cuda/cuda_run.h"
#include "runtime/mesh/processes.h"

namespace einc {
namespace {

constexpr size_t kCheckBytes = 2 * sizeof(int32_t);

}  // namespace

// ---- marks

DoneMarks::DoneMarks(size_t most) {
  std::vector<uint32_t> numbers(most + 1);
  std::iota(numbers.begin(), numbers.end(), 0U);
  const size_t bytes = numbers.size() * sizeof(uint32_t);
  numbers_ = cuda::allocate(static_cast<int64_t>(bytes), "the numbers of collectives");
  done_here_ = cuda::allocate_host(sizeof(uint32_t));
  const cuda::OwnedStream stream = cuda::make_stream();
  EINC_CUDA(cuMemcpyHtoDAsync_v2, numbers_.get(), numbers.data(), bytes, stream.get());
  EINC_CUDA(cuStreamSynchronize, stream.get());
}

void DoneMarks::begin(cuda::Stream stream) {
  labels_.clear();
  EINC_CUDA(cuMemcpyDtoHAsync_v2, done_here_.get(), numbers_.get(), sizeof(uint32_t), stream);
}

void DoneMarks::mark(cuda::Stream stream, std::string label) {
  labels_.push_back(std::move(label));
  EINC_CUDA(cuMemcpyDtoHAsync_v2, done_here_.get(), numbers_.get() + labels_.size() * sizeof(uint32_t), sizeof(uint32_t), stream);
}

std::string DoneMarks::next() const {
  const size_t done = *static_cast<volatile uint32_t*>(done_here_.get());
  return done < labels_.size() ? labels_[done] : "";
}

std::optional<DoneMarks> marks_of(const CudaMachine& machine, size_t most) {
  return machine.team == nullptr ? std::nullopt : std::optional<DoneMarks>(most);
}

// ---- what parts share

void CudaMachine::write(cuda::DevicePointer memory, std::span<const std::byte> bytes) const {
  const cuda::GpuScope scope(*gpu);
  EINC_CUDA(cuMemcpyHtoDAsync_v2, memory, bytes.data(), bytes.size(), compute->get());
  EINC_CUDA(cuStreamSynchronize, compute->get());
}

void CudaMachine::read(cuda::DevicePointer memory, std::span<std::byte> bytes) const {
  const cuda::GpuScope scope(*gpu);
  EINC_CUDA(cuMemcpyDtoHAsync_v2, bytes.data(), memory, bytes.size(), compute->get());
  EINC_CUDA(cuStreamSynchronize, compute->get());
}

void CudaMachine::wait(const std::optional<DoneMarks>& marks) const {
  if (team == nullptr) return void(EINC_CUDA(cuStreamSynchronize, compute->get()));
  try {
    team->wait(compute->get(), "the next exchange");
  } catch (const LateProcess& late) {
    const std::string next = marks ? marks->next() : "";
    if (next.empty()) throw;
    throw late.at(next);
  }
}

void CudaMachine::agree_on_algorithms() const {
  if (team == nullptr) return;
  demand_equal(*team->transport(), cuda::AlgorithmTable::get().used_hash(),
               "choice of measured algorithms (give all one EINC_GEMM_TABLE, made by a run of one process)");
}

std::string CudaMachine::numerics(std::span<CudaRun* const> runs) const {
  bool library = false;
  for (CudaRun* run : runs)
    for (CudaExecutor& executor : run->executors()) {
      executor.plan_gemms(), executor.plan_attention();
      library = library || !executor.library_attention().empty();
    }
  return fmt::format("{}, gemm algorithms {:016x}{}", gpu->name(), cuda::AlgorithmTable::get().used_hash(),
                     library ? ", attention by " + cuda::AttentionLibrary::get()->name() : "");
}

void CudaMachine::end() const {
  const cuda::GpuScope scope(*gpu);
  cuda::driver().cuStreamSynchronize(compute->get());
  cuda::driver().cuStreamSynchronize(collectives.get());
}

// ---- a step

void CapturedWork::play(cuda::Stream stream, const std::function<void()>& enqueue) {
  if (!std::exchange(ran_, true)) return enqueue();
  if (!graph_) {
    cuda::OwnedGraph captured;
    EINC_CUDA(cuStreamBeginCapture_v2, stream, cuda::kCaptureThreadLocal);
    try {
      enqueue();
    } catch (...) {
      cuda::driver().cuStreamEndCapture(stream, captured.out());
      throw;
    }
    EINC_CUDA(cuStreamEndCapture, stream, captured.out());
    EINC_CUDA(cuGraphInstantiateWithFlags, graph_.out(), captured.get(), 0);
  }
  EINC_CUDA(cuGraphLaunch, graph_.get(), stream);
}

size_t CudaChecks::add(std::vector<Check> checks) {
  checks_.push_back(std::move(checks));
  return checks_.size() - 1;
}

void CudaChecks::allocate() {
  const auto bytes = static_cast<int64_t>(checks_.size() * kCheckBytes);
  found_ = cuda::allocate(bytes, "what a step finds in its results");
  found_here_ = cuda::allocate_host(bytes);
}

void CudaChecks::enqueue(const CudaExecutable& helpers, const CudaKernels& kernels, cuda::Stream stream) const {
  if (checks_.empty()) return;
  EINC_CUDA(cuMemsetD8Async, found_.get(), 0, checks_.size() * kCheckBytes, stream);
  for (size_t i = 0; i < checks_.size(); ++i)
    for (const Check& check : checks_[i]) {
      const cuda::Kernel kernel = helper(helpers, kernels, check_function(check.dtype));
      uint64_t next = check.next, old = check.old, found = found_.get() + i * kCheckBytes;
      int64_t count = check.count;
      void* arguments[] = {&next, &old, &count, &found};
      EINC_CUDA(cuLaunchKernel, kernel, helper_blocks(count), 1, 1, kHelperThreads, 1, 1, 0, stream, arguments, nullptr);
    }
  EINC_CUDA(cuMemcpyDtoHAsync_v2, found_here_.get(), found_.get(), checks_.size() * kCheckBytes, stream);
}

}  // namespace einc
