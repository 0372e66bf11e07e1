// SPDX-License-Identifier: Apache-2.0
// A step is computed for all devices of the process before the next one is looked at, so that all stand at the same collective.
#include "runtime/mesh/host_devices.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstring>

#include "runtime/base/failure.h"
#include "runtime/mesh/finite.h"

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

DeviceMemory::DeviceMemory(const MeshPlan& plan, int64_t devices) : plan_(plan), mapping_(bytes_of_all(plan, devices)) {}

int64_t DeviceMemory::bytes_of_all(const MeshPlan& plan, int64_t devices) {
  int64_t bytes = 0;
  return __builtin_mul_overflow(plan.bytes, devices, &bytes) ? INT64_MAX : bytes;
}

HostMachine::HostMachine(MeshEngine& engine_, LentPool& lent_, std::shared_ptr<ThreadPool> pool_, int64_t working_bytes)
    : engine(engine_), lent(lent_), pool(std::move(pool_)), queue([this](uint32_t number) { running->carry_out(number); }) {
  for (int64_t d = engine.first(); d < engine.last(); ++d) working.push_back(std::make_shared<Mapping>(working_bytes));
}

HostDevices::HostDevices(const MeshPlan& plan, std::shared_ptr<HostMachine> machine)
    : plan_(plan), machine_(std::move(machine)), memory_(plan, held()) {
  const MeshEngine& engine = machine_->engine;
  for (int64_t d = 0; d < held(); ++d) {
    const NativePart& compute = plan.code.compute;
    Executor& executor = executors_.emplace_back(compute.program, compute.functions, machine_->pool, Sources::bound,
                                                 machine_->working[static_cast<size_t>(d)]);
    for (const BoundValue& bound : plan.code.bound) executor.bind(bound.buffer, memory_.at(d, bound.value));
  }
  for (const Coordinate& c : plan.coordinates)
    for (int64_t d = 0; d < held(); ++d) {
      const auto at = static_cast<int32_t>(engine.mesh().coordinate(engine.first() + d, c.mesh_axis));
      std::memcpy(memory_.at(d, c.value), &at, sizeof at);
    }
}

void HostDevices::copy(uint32_t value, uint32_t target) {
  for (int64_t d = 0; d < held(); ++d)
    std::memcpy(memory_.at(d, target), memory_.at(d, value), static_cast<size_t>(plan_.values[target].bytes));
}

void HostDevices::run(uint64_t seed, uint64_t step) {
  machine_->running = this;
  CollectiveQueue& queue = machine_->queue;
  sent_.assign(plan_.collectives.size(), {});
  times_.compute_s.assign(plan_.steps.size(), 0);
  times_.collective_s.assign(plan_.collectives.size(), 0);
  const auto begin = StepClock::now();
  for (const ValueCopy& snapshot : plan_.snapshots) copy(snapshot.from, snapshot.to);
  std::unique_lock computing(machine_->lent.computing());
  queue.begin();
  try {
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const DeviceStep& s = plan_.steps[i];
      if (s.act == DeviceAct::start) queue.start(s.index);
      if (s.act == DeviceAct::wait) queue.wait(s.index, computing);
      if (s.act != DeviceAct::compute) continue;
      const auto start = StepClock::now();
      compute(s, seed, step);
      times_.compute_s[i] = elapsed_s(start);
    }
  } catch (...) {
    computing.unlock();
    machine_->engine.give_up();
    queue.abandon();
    throw;
  }
  times_.all_s = elapsed_s(begin);
}

void HostDevices::compute(const DeviceStep& step, uint64_t seed, uint64_t number) {
  for (int64_t d = 0; d < held(); ++d) {
    working_ = machine_->engine.first() + d;
    executors_[static_cast<size_t>(d)].run_launches(step.first, step.last, seed, number);
  }
}

void HostDevices::carry_out(uint32_t number) {
  const auto start = StepClock::now();
  const MeshCollective& c = plan_.collectives[number];
  const auto memory = [&](uint32_t value) {
    return [this, value, first = machine_->engine.first()](int64_t device) { return memory_.at(device - first, value); };
  };
  try {
    const int64_t bytes = machine_->engine.carry_out(c, plan_.values[c.from], plan_.values[c.to], memory(c.from), memory(c.to));
    sent_[number] = {c.kind, c.mesh_axis, bytes};
  } catch (const LateProcess& late) {
    throw late.at(fmt::format("{} #{}", to_string(c.kind), number));
  }
  times_.collective_s[number] = elapsed_s(start);
}

bool HostDevices::holds_numbers(int64_t d, uint32_t value) const {
  const DeviceTensor& tensor = plan_.values[value];
  return einc::holds_numbers(*machine_->pool, tensor.dtype, tensor.bytes / bytes_of(tensor.dtype), memory_.at(d, value));
}

bool HostDevices::holds_numbers(uint32_t value) const {
  for (int64_t d = 0; d < held(); ++d)
    if (!holds_numbers(d, value)) return false;
  return true;
}

bool HostDevices::may_store(uint32_t value, uint32_t old) const {
  for (int64_t d = 0; d < held(); ++d)
    if (!holds_numbers(d, value) &&
        !each_may_store(numbers(plan_.values[value], memory_.at(d, value)), numbers(plan_.values[old], memory_.at(d, old))))
      return false;
  return true;
}

}  // namespace einc
