// SPDX-License-Identifier: Apache-2.0
// Streams, events and the graph of a step. Looks at what is to be stored are launches behind all others: one copy tells the host.
#include "runtime/cuda/mesh_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/base/failure.h"
#include "runtime/mesh/processes.h"

namespace einc {
namespace {

constexpr size_t kCheckBytes = 2 * sizeof(int32_t);

}  // namespace

CudaDevices::CudaDevices(const CudaMeshCode& code, std::shared_ptr<CudaMachine> machine)
    : code_(code),
      machine_(std::move(machine)),
      memory_(cuda::allocate(code.plan.bytes * held(), "the values of a mesh's devices")),
      moves_(code.plan, machine_->mesh, code.part.helpers, code.helpers, {machine_->first, machine_->last, memory_.get(), machine_->team}),
      events_(code.plan.collectives.size()) {
  for (Events& events : events_)
    for (cuda::OwnedEvent* event : {&events.ready, &events.done}) EINC_CUDA(cuEventCreate, event->out(), cuda::kEventWithoutTiming);
  add_executors();
  add_checks();
  if (machine_->team != nullptr) add_numbers();
  for (uint32_t c = 0; c < code.plan.collectives.size(); ++c) {
    const MeshCollective& collective = code.plan.collectives[c];
    sent_.push_back({collective.kind, collective.mesh_axis, moves_.sent_bytes(c)});
  }
  for (const Coordinate& c : code.plan.coordinates)
    for (int64_t d = 0; d < held(); ++d) {
      const auto where = static_cast<int32_t>(machine_->mesh.coordinate(machine_->first + d, c.mesh_axis));
      std::memcpy(place(d, c.value), &where, sizeof where);
      written(d, c.value);
    }
}

// A run that failed may have left work on both.
CudaDevices::~CudaDevices() {
  const cuda::GpuScope scope(*machine_->gpu);
  cuda::driver().cuStreamSynchronize(compute());
  cuda::driver().cuStreamSynchronize(machine_->collectives.get());
}

cuda::DevicePointer CudaDevices::at(int64_t d, uint32_t value) const {
  return memory_.get() + static_cast<uint64_t>(d * code_.plan.bytes + code_.plan.values[value].offset);
}

void CudaDevices::add_executors() {
  for (int64_t d = 0; d < held(); ++d) {
    CudaExecutor& executor = executors_.emplace_back(
        code_.part.device, code_.kernels,
        CudaPlace{machine_->gpu, machine_->compute, machine_->working[static_cast<size_t>(d)], machine_->workspace});
    for (const BoundValue& bound : code_.plan.code.bound) executor.bind(bound.buffer, at(d, bound.value));
  }
}

// The loss, gradients and updates; each value once.
void CudaDevices::add_checks() {
  const auto add = [&](uint32_t value, uint32_t old) {
    if (check_function(code_.plan.values[value].dtype).empty()) return;
    if (check_of_.try_emplace(value, checks_.size()).second) checks_.push_back({value, old});
  };
  for (const MeshUpdate& update : code_.plan.updates) add(update.value, code_.plan.sources[update.source].value);
  for (const auto& [path, gradient] : code_.plan.gradients) add(gradient.value, gradient.value);
  if (code_.plan.loss >= 0) add(static_cast<uint32_t>(code_.plan.loss), static_cast<uint32_t>(code_.plan.loss));
  const auto bytes = static_cast<int64_t>(checks_.size() * kCheckBytes);
  found_ = cuda::allocate(bytes, "what a step finds in its results");
  found_here_ = cuda::allocate_host(bytes);
}

void CudaDevices::add_numbers() {
  std::vector<uint32_t> numbers;
  for (uint32_t c = 0; c < events_.size(); ++c) numbers.push_back(c + 1);
  numbers.push_back(0);  // of none
  const size_t bytes = numbers.size() * sizeof(uint32_t);
  numbers_ = cuda::allocate(static_cast<int64_t>(bytes), "the numbers of collectives");
  done_here_ = cuda::allocate_host(sizeof(uint32_t));
  EINC_CUDA(cuMemcpyHtoDAsync_v2, numbers_.get(), numbers.data(), bytes, compute());
  EINC_CUDA(cuStreamSynchronize, compute());
}

// ---- values

std::byte* CudaDevices::place(int64_t, uint32_t value) {
  placed_.resize(static_cast<size_t>(code_.plan.values[value].bytes));
  return placed_.data();
}

void CudaDevices::written(int64_t d, uint32_t value) {
  const cuda::GpuScope scope(*machine_->gpu);
  EINC_CUDA(cuMemcpyHtoDAsync_v2, at(d, value), placed_.data(), placed_.size(), compute());
  EINC_CUDA(cuStreamSynchronize, compute());
}

const std::byte* CudaDevices::read(int64_t d, uint32_t value, std::vector<std::byte>& room) const {
  const cuda::GpuScope scope(*machine_->gpu);
  room.resize(static_cast<size_t>(code_.plan.values[value].bytes));
  EINC_CUDA(cuMemcpyDtoHAsync_v2, room.data(), at(d, value), room.size(), compute());
  EINC_CUDA(cuStreamSynchronize, compute());
  return room.data();
}

void CudaDevices::copy(uint32_t value, uint32_t target) {
  const cuda::GpuScope scope(*machine_->gpu);
  const auto bytes = static_cast<size_t>(code_.plan.values[target].bytes);
  for (int64_t d = 0; d < held(); ++d)
    if (bytes > 0) EINC_CUDA(cuMemcpyDtoDAsync_v2, at(d, target), at(d, value), bytes, compute());
}

int32_t CudaDevices::found(uint32_t value, size_t which) const {
  const auto check = check_of_.find(value);
  return check == check_of_.end() ? 0 : static_cast<const int32_t*>(found_here_.get())[2 * check->second + which];
}

// ---- runs

void CudaDevices::begin(uint64_t seed, uint64_t step) {
  for (CudaExecutor& executor : executors_) executor.begin_parts(seed, step);
}

void CudaDevices::run(uint64_t seed, uint64_t step) {
  const cuda::GpuScope scope(*machine_->gpu);
  begin(seed, step);
  if (!ran_) agree_on_algorithms();
  play();
  wait();
  for (size_t e = 0; e < executors_.size(); ++e) {
    failing_ = machine_->first + static_cast<int64_t>(e) % held();
    executors_[e].check_parts();
  }
}

// NCCL tells nothing of a collective that is under way: where the run stands follows from those that are done.
void CudaDevices::wait() {
  if (machine_->team == nullptr) return void(EINC_CUDA(cuStreamSynchronize, compute()));
  try {
    machine_->team->wait(compute(), "the next exchange");
  } catch (const LateProcess& late) {
    const auto next = static_cast<size_t>(*static_cast<volatile uint32_t*>(done_here_.get()));
    if (next >= sent_.size()) throw;
    throw late.at(fmt::format("{} #{}", to_string(sent_[next].kind), next));
  }
}

// Another algorithm sums in another order: processes that have measured others must not go on.
void CudaDevices::agree_on_algorithms() {
  if (machine_->team == nullptr) return;
  demand_equal(*machine_->team->transport(), cuda::AlgorithmTable::get().used_hash(),
               "choice of measured algorithms (give all one EINC_GEMM_TABLE, made by a run of one process)");
}

// The first time launch by launch: what the driver and cuBLASLt set up when first asked for something may not be set up during a capture.
void CudaDevices::play() {
  if (!std::exchange(ran_, true)) return enqueue();
  if (!graph_) {
    cuda::OwnedGraph captured;
    EINC_CUDA(cuStreamBeginCapture_v2, compute(), cuda::kCaptureThreadLocal);
    try {
      enqueue();
    } catch (...) {
      cuda::driver().cuStreamEndCapture(compute(), captured.out());
      throw;
    }
    EINC_CUDA(cuStreamEndCapture, compute(), captured.out());
    EINC_CUDA(cuGraphInstantiateWithFlags, graph_.out(), captured.get(), 0);
  }
  EINC_CUDA(cuGraphLaunch, graph_.get(), compute());
}

void CudaDevices::enqueue() {
  if (machine_->team != nullptr)
    EINC_CUDA(cuMemcpyDtoHAsync_v2, done_here_.get(), numbers_.get() + events_.size() * sizeof(uint32_t), sizeof(uint32_t), compute());
  for (CudaExecutor& executor : executors_) executor.enqueue_begin();
  for (const ValueCopy& snapshot : code_.plan.snapshots) copy(snapshot.from, snapshot.to);
  for (const DeviceStep& step : code_.plan.steps) enqueue(step);
  enqueue_checks();
  for (CudaExecutor& executor : executors_) executor.enqueue_end();
}

void CudaDevices::enqueue(const DeviceStep& step) {
  const cuda::Stream collectives = machine_->collectives.get();
  if (step.act == DeviceAct::start) {
    EINC_CUDA(cuEventRecord, events_[step.index].ready.get(), compute());
    EINC_CUDA(cuStreamWaitEvent, collectives, events_[step.index].ready.get(), 0);
    moves_.enqueue(step.index, collectives);
    if (machine_->team != nullptr)
      EINC_CUDA(cuMemcpyDtoHAsync_v2, done_here_.get(), numbers_.get() + step.index * sizeof(uint32_t), sizeof(uint32_t), collectives);
    EINC_CUDA(cuEventRecord, events_[step.index].done.get(), collectives);
  } else if (step.act == DeviceAct::wait) {
    EINC_CUDA(cuStreamWaitEvent, compute(), events_[step.index].done.get(), 0);
  } else {
    for (CudaExecutor& executor : executors_) executor.enqueue_launches(step.first, step.last);
  }
}

void CudaDevices::enqueue_checks() {
  if (checks_.empty()) return;
  EINC_CUDA(cuMemsetD8Async, found_.get(), 0, checks_.size() * kCheckBytes, compute());
  for (size_t i = 0; i < checks_.size(); ++i) {
    const DeviceTensor& value = code_.plan.values[checks_[i].value];
    const cuda::Kernel kernel = helper(code_.part.helpers, code_.helpers, check_function(value.dtype));
    for (int64_t d = 0; d < held(); ++d) {
      uint64_t next = at(d, checks_[i].value), old = at(d, checks_[i].old), found = found_.get() + i * kCheckBytes;
      int64_t count = value.bytes / bytes_of(value.dtype);
      void* arguments[] = {&next, &old, &count, &found};
      EINC_CUDA(cuLaunchKernel, kernel, helper_blocks(count), 1, 1, kHelperThreads, 1, 1, 0, compute(), arguments, nullptr);
    }
  }
  EINC_CUDA(cuMemcpyDtoHAsync_v2, found_here_.get(), found_.get(), checks_.size() * kCheckBytes, compute());
}

std::string CudaDevices::numerics() {
  const cuda::GpuScope scope(*machine_->gpu);
  for (CudaExecutor& executor : executors_) executor.plan_gemms(), executor.plan_attention();
  bool library = false;
  for (const CudaExecutor& executor : executors_) library = library || !executor.library_attention().empty();
  return fmt::format("{}, gemm algorithms {:016x}{}", machine_->gpu->name(), cuda::AlgorithmTable::get().used_hash(),
                     library ? ", attention by " + cuda::AttentionLibrary::get()->name() : "");
}

}  // namespace einc
