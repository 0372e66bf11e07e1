// SPDX-License-Identifier: Apache-2.0
// A step is computed for all devices of the process before the next one is looked at, so that all stand at the same collective.
#include "runtime/mesh/host_devices.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstring>

#include "runtime/base/failure.h"
#include "runtime/mesh/finite.h"
#include "runtime/mesh/pipeline_plan.h"
#include "runtime/mesh/tree_sum.h"

namespace einc {
namespace {

using StepClock = std::chrono::steady_clock;
double elapsed_s(StepClock::time_point start) { return std::chrono::duration<double>(StepClock::now() - start).count(); }

std::vector<double> numbers(const DeviceTensor& value, const std::byte* memory) {
  return TensorView(value.dtype, value.shape, memory).to_doubles();
}

bool each_may_store(const std::vector<double>& next, const std::vector<double>& old) {
  for (size_t i = 0; i < next.size(); ++i)
    if (std::isnan(next[i]) || (std::isinf(next[i]) && std::isfinite(old[i]))) return false;
  return true;
}

}  // namespace

void copy_all(ThreadPool& pool, const std::byte* from, int64_t bytes, std::byte* to) {
  constexpr int64_t kWorthCopying = int64_t{1} << 20;  // bytes: 80 us of one thread, which reads and writes 27 GB/s (Xeon)
  if (bytes < kWorthCopying) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  pool.run(bytes, [&](int, int64_t begin, int64_t end) { std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin)); });
}

DeviceMemory::DeviceMemory(const MeshPlan& plan, int64_t devices, const DeviceMemory* sibling)
    : plan_(plan),
      shared_(sibling ? sibling->shared_ : std::make_shared<Mapping>(bytes_of_all(plan, devices) - plan.kept * devices)),
      kept_(std::make_unique<Mapping>(plan.kept * devices)) {}

int64_t DeviceMemory::bytes_of_all(const MeshPlan& plan, int64_t devices) {
  int64_t bytes = 0;
  return __builtin_mul_overflow(plan.bytes, devices, &bytes) ? INT64_MAX : bytes;
}

HostMachine::HostMachine(MeshEngine& engine_, LentPool& lent_, std::shared_ptr<ThreadPool> pool_, const std::vector<int64_t>& working_bytes)
    : engine(engine_), lent(lent_), pool(std::move(pool_)) {
  for (const int64_t bytes : working_bytes) working.push_back(std::make_shared<Mapping>(bytes));
}

HostRun::HostRun(const MeshPlan& plan, HostMachine& machine, MeshEngine& engine, std::span<const std::shared_ptr<Mapping>> working,
                 DeviceMemory memory, int stages)
    : plan_(plan), machine_(machine), engine_(engine), memory_(std::move(memory)), stages_(stages) {
  for (int64_t d = 0; d < held(); ++d) {
    const NativePart& compute = plan.code.compute;
    Executor& executor =
        executors_.emplace_back(compute.program, compute.functions, machine_.pool, Sources::bound, working[static_cast<size_t>(d)]);
    for (const BoundValue& bound : plan.code.bound) executor.bind(bound.buffer, memory_.at(d, bound.value));
  }
  for (const Coordinate& c : plan.coordinates)
    for (int64_t d = 0; d < held(); ++d) {
      const auto at = static_cast<int32_t>(engine.mesh().coordinate(engine.first() + d, c.mesh_axis));
      std::memcpy(memory_.at(d, c.value), &at, sizeof at);
    }
  begin();
}

void HostRun::place_kept(int64_t d, int64_t bytes, std::byte* memory) {
  const std::vector<ExecutableBuffer>& buffers = plan_.code.compute.program.buffers;
  std::vector<bool> is_value(buffers.size(), false);
  for (const BoundValue& bound : plan_.code.bound) is_value[bound.buffer] = true;
  for (uint32_t b = 0; b < buffers.size(); ++b)
    if (!is_value[b] && !is_source(buffers[b].role) && buffers[b].offset < bytes)
      executors_[static_cast<size_t>(d)].bind(b, memory + buffers[b].offset);
}

void HostRun::copy(uint32_t value, uint32_t target) {
  for (int64_t d = 0; d < held(); ++d) copy_all(*machine_.pool, memory_.at(d, value), plan_.values[target].bytes, memory_.at(d, target));
}

void HostRun::begin() {
  sent.assign(plan_.collectives.size(), {});
  in_queue_.assign(plan_.collectives.size(), 0);
  times.compute_s.assign(plan_.steps.size(), 0);
  times.collective_s.assign(plan_.collectives.size(), 0);
  computed_ = 0;
}

void HostRun::store_copies() {
  for (Executor& executor : executors_) executor.store_copies(0, executor.program().launches.size());
}

NonFinite HostRun::run_steps(size_t first, size_t last, uint64_t seed, uint64_t step, std::unique_lock<std::mutex>& computing) {
  CollectiveQueue& queue = machine_.queue;
  for (size_t i = first; i < last; ++i) {
    const DeviceStep& s = plan_.steps[i];
    if (s.act == DeviceAct::agree) {
      if (const NonFinite fault = agree(computing); fault != NonFinite::nothing) return fault;
      continue;
    }
    if (is_collectives(s) && plan_.collectives[s.index].mesh_axis == stages_) {
      const MeshCollective& c = plan_.collectives[s.index];
      // At its wait: then that of a collective that makes the term is over.
      for (int64_t d = 0; s.act == DeviceAct::wait && is_microbatch_sum(c) && d < held(); ++d) add_to_sum(c, d);
      continue;
    }
    if (s.act == DeviceAct::start) in_queue_[s.index] = queue.start([this, number = s.index] { carry_out(number); });
    if (s.act == DeviceAct::wait) queue.wait(in_queue_[s.index], computing);
    if (s.act != DeviceAct::compute) continue;
    const auto start = StepClock::now();
    compute(s, seed, step);
    times.compute_s[i] += elapsed_s(start);
  }
  return NonFinite::nothing;
}

// Behind all collectives that were started, whose order is that of all processes: what they make is looked at, too.
NonFinite HostRun::agree(std::unique_lock<std::mutex>& computing) {
  NonFinite found = NonFinite::nothing;
  const uint32_t number = machine_.queue.start([&] { found = engine_.agree(fault()); });
  machine_.queue.wait(number, computing);
  return found;
}

NonFinite HostRun::fault() const {
  NonFinite fault = NonFinite::nothing;
  for (const Executor& executor : executors_) fault = earlier(fault, executor.fault_before(computed_));
  return fault;
}

void HostRun::compute(const DeviceStep& step, uint64_t seed, uint64_t number) {
  for (int64_t d = 0; d < held(); ++d) {
    working_ = engine_.first() + d;
    executors_[static_cast<size_t>(d)].run_launches(step.first, step.last, seed, number);
    if (!plan_.in_place) executors_[static_cast<size_t>(d)].store_copies(step.first, step.last);
  }
  computed_ = step.last;
}

void HostRun::add_to_sum(const MeshCollective& sum, int64_t d) {
  const DeviceTensor& tensor = plan_.values[sum.to];
  std::byte* so_far = at(d, sum.to);
  tree_reduce(*machine_.pool, ReduceKind::sum, tensor.dtype, std::array<const std::byte*, 2>{so_far, at(d, sum.from)},
              tensor.bytes / bytes_of(tensor.dtype), so_far);
}

void HostRun::carry_out(uint32_t number) {
  const auto start = StepClock::now();
  const MeshCollective& c = plan_.collectives[number];
  const auto memory = [&](uint32_t value) {
    return [this, value, first = engine_.first()](int64_t device) { return memory_.at(device - first, value); };
  };
  try {
    const int64_t bytes = engine_.carry_out(c, plan_.values[c.from], plan_.values[c.to], memory(c.from), memory(c.to));
    sent[number] = {c.kind, c.mesh_axis, sent[number].bytes + bytes};
  } catch (const LateProcess& late) {
    throw late.at(fmt::format("{} #{}", to_string(c.kind), number));
  }
  times.collective_s[number] += elapsed_s(start);
}

bool HostRun::holds_numbers(int64_t d, uint32_t value) const {
  const DeviceTensor& tensor = plan_.values[value];
  return einc::holds_numbers(*machine_.pool, tensor.dtype, tensor.bytes / bytes_of(tensor.dtype), memory_.at(d, value));
}

bool HostRun::holds_numbers(uint32_t value) const {
  for (int64_t d = 0; d < held(); ++d)
    if (!holds_numbers(d, value)) return false;
  return true;
}

bool HostRun::may_store(uint32_t value, const HostRun& of_old, uint32_t old) const {
  for (int64_t d = 0; d < held(); ++d)
    if (!holds_numbers(d, value) &&
        !each_may_store(numbers(plan_.values[value], at(d, value)), numbers(of_old.plan_.values[old], of_old.at(d, old))))
      return false;
  return true;
}

HostDevices::HostDevices(const MeshPlan& plan, std::shared_ptr<HostMachine> machine)
    : machine_(std::move(machine)),
      run_(plan, *machine_, machine_->engine, machine_->working, DeviceMemory(plan, machine_->engine.held())) {}

NonFinite HostDevices::run(uint64_t seed, uint64_t step) {
  NonFinite fault = NonFinite::nothing;
  run_.begin();
  const auto begin = StepClock::now();
  for (const ValueCopy& snapshot : run_.plan().snapshots) run_.copy(snapshot.from, snapshot.to);
  std::unique_lock computing(machine_->lent.computing());
  machine_->queue.begin();
  try {
    fault = run_.run_steps(0, run_.plan().steps.size(), seed, step, computing);
    if (run_.plan().in_place && fault == NonFinite::nothing) run_.store_copies();
  } catch (...) {
    computing.unlock();
    machine_->engine.give_up();
    machine_->queue.abandon();
    throw;
  }
  sent_ = run_.sent, times_ = run_.times;
  times_.all_s = elapsed_s(begin);
  return fault;
}

}  // namespace einc
