// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_run.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/mesh/pipeline_plan.h"

namespace einc {
namespace {

GpuMemory values_memory(int64_t bytes) {
  return bytes == 0 ? nullptr : std::make_shared<const cuda::DeviceMemory>(cuda::allocate(bytes, "the values of a mesh's devices"));
}

}  // namespace

// ---- values

CudaValues::CudaValues(const MeshPlan& plan, int64_t devices, const CudaValues* sibling)
    : plan_(plan),
      shared_(sibling ? sibling->shared_ : values_memory((plan.bytes - plan.kept) * devices)),
      kept_(values_memory(plan.kept * devices)) {}

cuda::DevicePointer CudaValues::at(int64_t d, uint32_t value) const {
  if (plan_.values[value].offset == kElsewhere) return elsewhere_.at({d, value});
  const ValuePlace place = place_of(plan_, d, value);
  return (place.of_microbatch ? kept_ : shared_)->get() + static_cast<uint64_t>(place.offset);
}

// ---- devices

CudaRun::CudaRun(const CudaMeshCode& code, CudaMachine& machine, const MeshEngine& engine, std::span<const GpuMemory> working,
                 CudaValues values, DoneMarks* marks, int stages)
    : code_(code),
      machine_(machine),
      engine_(engine),
      values_(std::move(values)),
      marks_(marks),
      stages_(stages),
      moves_(code.plan, engine.mesh(), code.helpers, code.helper_kernels,
             {engine.first(), engine.last(), [this](int64_t d, uint32_t value) { return at(d, value); },
              [&engine](int64_t device) { return engine.process_of(device); }, machine.packed, machine.team},
             stages),
      events_(code.plan.collectives.size()) {
  for (Events& events : events_)
    for (cuda::OwnedEvent* event : {&events.ready, &events.done}) EINC_CUDA(cuEventCreate, event->out(), cuda::kEventWithoutTiming);
  add_executors(working);
  add_sums();
  set_coordinates();
}

void CudaRun::add_executors(std::span<const GpuMemory> working) {
  for (int64_t d = 0; d < held(); ++d) {
    CudaExecutor& executor = executors_.emplace_back(
        code_.device, code_.kernels, CudaPlace{machine_.gpu, machine_.compute, working[static_cast<size_t>(d)], machine_.workspace});
    for (const BoundValue& bound : code_.plan.code.bound) executor.bind(bound.buffer, at(d, bound.value));
  }
}

void CudaRun::add_sums() {
  std::vector<uint64_t> table;
  for (uint32_t c = 0; c < code_.plan.collectives.size(); ++c) {
    const MeshCollective& collective = code_.plan.collectives[c];
    if (collective.mesh_axis != stages_ || !is_microbatch_sum(collective)) continue;
    terms_of_[c] = table.size();
    for (int64_t d = 0; d < held(); ++d) table.push_back(at(d, collective.to)), table.push_back(at(d, collective.from));
  }
  if (table.empty()) return;
  const size_t bytes = table.size() * sizeof(uint64_t);
  terms_ = cuda::allocate(static_cast<int64_t>(bytes), "the terms of sums over microbatches");
  EINC_CUDA(cuMemcpyHtoDAsync_v2, terms_.get(), table.data(), bytes, compute());
  EINC_CUDA(cuStreamSynchronize, compute());
}

void CudaRun::set_coordinates() {
  for (const Coordinate& c : code_.plan.coordinates)
    for (int64_t d = 0; d < held(); ++d) {
      const auto where = static_cast<int32_t>(engine_.mesh().coordinate(engine_.first() + d, c.mesh_axis));
      EINC_CUDA(cuMemcpyHtoDAsync_v2, at(d, c.value), &where, sizeof where, compute());
      EINC_CUDA(cuStreamSynchronize, compute());
    }
}

void CudaRun::place_kept(int64_t d, int64_t bytes, cuda::DevicePointer memory) {
  const std::vector<ExecutableBuffer>& buffers = code_.plan.code.compute.program.buffers;
  std::vector<bool> is_value(buffers.size(), false);
  for (const BoundValue& bound : code_.plan.code.bound) is_value[bound.buffer] = true;
  for (uint32_t b = 0; b < buffers.size(); ++b)
    if (!is_value[b] && !is_source(buffers[b].role) && buffers[b].offset < bytes)
      executors_[static_cast<size_t>(d)].bind(b, memory + static_cast<uint64_t>(buffers[b].offset));
}

void CudaRun::begin(uint64_t seed, std::span<const uint64_t> steps) {
  for (CudaExecutor& executor : executors_) executor.begin_parts(seed, steps);
}

void CudaRun::enqueue_begin(size_t run) {
  for (CudaExecutor& executor : executors_) executor.enqueue_begin(run);
}

void CudaRun::enqueue_end(size_t run) {
  for (CudaExecutor& executor : executors_) executor.enqueue_end(run);
}

void CudaRun::enqueue_copy(uint32_t value, uint32_t target) {
  const auto bytes = static_cast<size_t>(code_.plan.values[target].bytes);
  for (int64_t d = 0; d < held(); ++d)
    if (bytes > 0) EINC_CUDA(cuMemcpyDtoDAsync_v2, at(d, target), at(d, value), bytes, compute());
}

void CudaRun::enqueue_snapshots() {
  for (const ValueCopy& snapshot : code_.plan.snapshots) enqueue_copy(snapshot.from, snapshot.to);
}

void CudaRun::enqueue_agreement(uint32_t launches) {
  if (over_ < started_) EINC_CUDA(cuStreamWaitEvent, compute(), events_[started_ - 1].done.get(), 0);
  over_ = started_;
  for (CudaExecutor& executor : executors_) executor.enqueue_looks(launches);
}

NonFinite CudaRun::fault(uint32_t launches) {
  NonFinite fault = NonFinite::nothing;
  for (CudaExecutor& executor : executors_) fault = earlier(fault, executor.fault_before(launches));
  return fault;
}

void CudaRun::enqueue_copies() {
  for (CudaExecutor& executor : executors_) executor.enqueue_copies(0, executor.program().launches.size());
}

void CudaRun::enqueue_steps(size_t first, size_t last) {
  if (first == 0) started_ = over_ = 0;
  for (size_t s = first; s < last; ++s) enqueue(code_.plan.steps[s]);
}

void CudaRun::enqueue(const DeviceStep& step) {
  const cuda::Stream collectives = machine_.collectives.get();
  if (step.act == DeviceAct::compute) {
    for (CudaExecutor& executor : executors_) {
      executor.enqueue_launches(step.first, step.last);
      if (!code_.plan.in_place) executor.enqueue_copies(step.first, step.last);
    }
    return;
  }
  const MeshCollective& collective = code_.plan.collectives[step.index];
  if (collective.mesh_axis == stages_) {
    // At its wait: then that of a collective that makes the term is over.
    if (step.act == DeviceAct::wait && is_microbatch_sum(collective)) add_to_sum(step.index);
  } else if (step.act == DeviceAct::start) {
    EINC_CUDA(cuEventRecord, events_[step.index].ready.get(), compute());
    EINC_CUDA(cuStreamWaitEvent, collectives, events_[step.index].ready.get(), 0);
    moves_.enqueue(step.index, collectives);
    if (marks_ != nullptr) marks_->mark(collectives, fmt::format("{} #{}", to_string(collective.kind), step.index));
    EINC_CUDA(cuEventRecord, events_[step.index].done.get(), collectives);
    started_ = step.index + 1;
  } else if (step.index >= over_) {
    EINC_CUDA(cuStreamWaitEvent, compute(), events_[step.index].done.get(), 0);
  }
}

void CudaRun::add_to_sum(uint32_t collective) {
  const uint32_t sum = code_.plan.collectives[collective].to;
  const DeviceTensor& tensor = code_.plan.values[sum];
  const cuda::Kernel kernel = helper(code_.helpers, code_.helper_kernels, sum_function(ReduceKind::sum, tensor.dtype, 2));
  for (int64_t d = 0; d < held(); ++d) {
    uint64_t terms = terms_.get() + (terms_of_.at(collective) + 2 * static_cast<size_t>(d)) * sizeof(uint64_t), result = at(d, sum);
    int64_t count = tensor.bytes / bytes_of(tensor.dtype);
    void* arguments[] = {&terms, &result, &count};
    EINC_CUDA(cuLaunchKernel, kernel, helper_blocks(count), 1, 1, kHelperThreads, 1, 1, 0, compute(), arguments, nullptr);
  }
}

}  // namespace einc
