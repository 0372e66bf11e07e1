// SPDX-License-Identifier: Apache-2.0
// Nothing is stored before all processes agree that all is finite.
#include "runtime/mesh/mesh_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/base/check.h"
#include "runtime/base/failure.h"

namespace einc {
namespace {

constexpr SourceKind kSourceKinds[] = {SourceKind::input, SourceKind::param, SourceKind::state};

using StepClock = std::chrono::steady_clock;
double elapsed_s(StepClock::time_point start) { return std::chrono::duration<double>(StepClock::now() - start).count(); }

}  // namespace

DeviceMemory::DeviceMemory(const MeshPlan& plan, int64_t devices) : plan_(plan), mapping_(bytes_of_all(plan, devices)) {}

int64_t DeviceMemory::bytes_of_all(const MeshPlan& plan, int64_t devices) {
  int64_t bytes = 0;
  return __builtin_mul_overflow(plan.bytes, devices, &bytes) ? INT64_MAX : bytes;
}

MeshRunner::MeshRunner(const MeshProgram& program, std::shared_ptr<ThreadPool> pool)
    : program_(program),
      pool_(std::move(pool)),
      lent_(pool_),
      engine_(program.mesh(), lent_, program.transport()),
      queue_([this](uint32_t number) { carry_out(*running_, number); }) {
  for (const SourceKind kind : kSourceKinds) whole_[static_cast<size_t>(kind)].resize(sources_of(program.info, kind).size());
  int64_t bytes = 0;
  for (const std::optional<MeshPlan>& plan : program.parts())
    if (plan) bytes = std::max(bytes, working_bytes(*plan, pool_->size()));
  std::vector<std::shared_ptr<Mapping>> working;  // by device: its parts run in the same, but not at the same time
  for (int64_t d = 0; d < held(); ++d) working.push_back(std::make_shared<Mapping>(bytes));
  for (size_t p = 0; p < kParts; ++p)
    if (const auto& plan = program.parts()[static_cast<Part>(p)])
      add_executors(parts_[static_cast<Part>(p)].emplace(*plan, held()), working);
}

void MeshRunner::add_executors(PartMemory& part, std::span<const std::shared_ptr<Mapping>> working) {
  for (const MeshStage& stage : part.plan.stages)
    for (int64_t d = 0; d < held(); ++d) {
      Executor& executor = part.executors.emplace_back(stage.compute.program, stage.compute.functions, pool_, Sources::bound,
                                                       working[static_cast<size_t>(d)]);
      for (const StageRead& read : stage.reads) executor.bind(read.buffer, part.memory.at(d, read.value));
    }
  for (const Coordinate& c : part.plan.coordinates)
    for (int64_t d = 0; d < held(); ++d) {
      const auto at = static_cast<int32_t>(engine_.mesh().coordinate(engine_.first() + d, c.mesh_axis));
      std::memcpy(part.memory.at(d, c.value), &at, sizeof at);
    }
}

// ---- runs

void MeshRunner::run_steps(PartMemory& part, uint64_t seed, uint64_t step) {
  running_ = &part;
  part.sent.assign(part.plan.collectives.size(), {});
  part.times.compute_s.assign(part.plan.steps.size(), 0);
  part.times.collective_s.assign(part.plan.collectives.size(), 0);
  const auto begin = StepClock::now();
  for (const ValueCopy& copy : part.plan.snapshots)
    for (int64_t d = 0; d < held(); ++d)
      std::memcpy(part.memory.at(d, copy.to), part.memory.at(d, copy.from), static_cast<size_t>(part.plan.values[copy.to].bytes));
  std::unique_lock computing(lent_.computing());
  queue_.begin();
  try {
    for (size_t i = 0; i < part.plan.steps.size(); ++i) {
      const DeviceStep& s = part.plan.steps[i];
      if (s.act == DeviceAct::start) queue_.start(s.index);
      if (s.act == DeviceAct::wait) queue_.wait(s.index, computing);
      if (s.act != DeviceAct::compute) continue;
      const auto start = StepClock::now();
      compute(part, s, seed, step);
      part.times.compute_s[i] = elapsed_s(start);
    }
  } catch (...) {
    computing.unlock();
    engine_.give_up();
    queue_.abandon();
    throw;
  }
  part.times.all_s = elapsed_s(begin);
}

void MeshRunner::compute(PartMemory& part, const DeviceStep& step, uint64_t seed, uint64_t number) {
  const MeshStage& stage = part.plan.stages[step.index];
  for (int64_t d = 0; d < held(); ++d) {
    part.working = engine_.first() + d;
    Executor& executor = part.executors[step.index * static_cast<size_t>(held()) + static_cast<size_t>(d)];
    executor.run_launches(step.first, step.last, seed, number);
    for (const StageMake& made : stage.makes)
      if (makes(step, made))
        std::memcpy(part.memory.at(d, made.value), executor.address(made.buffer), static_cast<size_t>(part.plan.values[made.value].bytes));
  }
}

void MeshRunner::carry_out(PartMemory& part, uint32_t number) {
  const auto start = StepClock::now();
  const MeshCollective& c = part.plan.collectives[number];
  const auto memory = [&](uint32_t value) {
    return [&part, value, first = engine_.first()](int64_t device) { return part.memory.at(device - first, value); };
  };
  try {
    const int64_t bytes = engine_.carry_out(c, part.plan.values[c.from], part.plan.values[c.to], memory(c.from), memory(c.to));
    part.sent[number] = {c.kind, c.mesh_axis, bytes};
  } catch (const LateProcess& late) {
    throw late.at(fmt::format("{} #{}", to_string(c.kind), number));
  }
  part.times.collective_s[number] = elapsed_s(start);
}

void MeshRunner::store(PartMemory& part) {
  const MeshPlan& plan = part.plan;
  for (const MeshUpdate& update : plan.updates) {
    const MeshSource& target = plan.sources[update.source];
    for (int64_t d = 0; d < held(); ++d)
      std::memcpy(part.memory.at(d, target.value), part.memory.at(d, update.value), static_cast<size_t>(plan.values[target.value].bytes));
    written(target.source);
    whole(target.source).fresh = false;
    part.fresh[update.source] = true;
    if (whole(target.source).shared) fetch(target.source);
    empty(target.source);
  }
}

NonFinite MeshRunner::run_while_finite(Part which, uint64_t seed, uint64_t step) {
  PartMemory& part = *parts_[which];
  cut_out(part);
  try {
    run_steps(part, seed, step);
  } catch (const FaultyElement& found) {
    refuse_element(found, part.working, which, seed, step);
  }
  results_.clear();
  const auto fault = static_cast<NonFinite>(engine_.agree(static_cast<uint8_t>(fault_of(part))));
  if (fault != NonFinite::nothing) return fault;
  store(part);
  if (which != Part::evaluation) last_ = which;
  return NonFinite::nothing;
}

// ---- results

TensorView MeshRunner::put_together(Part part, const MeshResult& result, const TensorInfo& tensor) const {
  results_.emplace_back(static_cast<size_t>(tensor.bytes()));
  const DeviceMemory& memory = parts_[part]->memory;
  engine_.gather(
      result.layout, tensor.shape, bytes_of(tensor.dtype),
      [&](int64_t device) { return memory.at(device - engine_.first(), result.value); }, results_.back().data());
  return {tensor.dtype, tensor.shape, results_.back().data()};
}

TensorView MeshRunner::output(uint32_t index) const {
  return put_together(last_, parts_[last_]->plan.outputs[index], program_.info.outputs[index]);
}

TensorView MeshRunner::gradient(uint32_t param) const {
  const TensorInfo& tensor = program_.info.params[param];
  for (const auto& [path, gradient] : parts_[Part::training]->plan.gradients)
    if (path == tensor.name) {
      TensorInfo as_made = tensor;
      as_made.dtype = parts_[Part::training]->plan.values[gradient.value].dtype;
      return put_together(Part::training, gradient, as_made);
    }
  throw RuntimeFailure(FailureKind::data, fmt::format("'{}' has no gradient: it is not trained", tensor.name));
}

TensorView MeshRunner::loss(Part part) const {
  const MeshPlan& plan = parts_[part]->plan;
  const auto value = static_cast<uint32_t>(plan.loss);
  return {plan.values[value].dtype, plan.values[value].shape, parts_[part]->memory.at(0, value)};
}

}  // namespace einc
