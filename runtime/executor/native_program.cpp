// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/native_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/base/pullback_names.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/find_fault.h"

namespace einc {
namespace {

// Evaluations and the steps of training take turns, each with the same memory: the most that one of them needs.
int64_t training_bytes(const PerPart<NativePart>& parts, int threads) {
  int64_t bytes = 0;
  for (const Part p : {Part::evaluation, Part::training, Part::accumulation})
    if (parts[p]) bytes = std::max(bytes, memory_of(parts[p]->program, Sources::bound, threads));
  return bytes;
}

// Whether output i may lie outside the arena. Not where it is an input, param or state, or another output too. Of a pullback in halves, not
// where the half that it does not belong to uses it: the caller binds it for its own half alone, and may have changed it by the second.
// Vectors may be stored to an arena's buffer by whole lines of the cache.
bool is_movable(const NativePart& part, uint32_t index) {
  const Executable& program = part.program;
  const auto& [name, buffer] = program.outputs[index];
  const ExecutableBuffer& b = program.buffers[buffer];
  if (b.role != BufferRole::arena || b.padding != 0) return false;
  for (uint32_t other = 0; other < program.outputs.size(); ++other)
    if (other != index && program.outputs[other].buffer == buffer) return false;
  if (!part.first_half) return true;
  const auto uses = [&](const Launch& launch) { return std::ranges::find(launch.buffers, buffer) != launch.buffers.end(); };
  const auto half = program.launches.begin() + static_cast<std::ptrdiff_t>(*part.first_half);
  return name.starts_with(kPulledBack) ? std::none_of(program.launches.begin(), half, uses)
                                       : std::none_of(half, program.launches.end(), uses);
}

class NativeRunner : public Runner {
 public:
  NativeRunner(const ProgramInfo& info, const PerPart<NativePart>& parts, const std::shared_ptr<ThreadPool>& pool)
      : info_(info), parts_(parts) {
    const auto shared = std::make_shared<Mapping>(training_bytes(parts, pool->size()));
    for (const Part p : {Part::forward, Part::evaluation, Part::training, Part::accumulation}) {
      const auto& part = parts[p];
      if (!part) continue;
      if (p == Part::forward)
        executors_[p].emplace(part->program, part->functions, pool, Sources::bound);
      else
        executors_[p].emplace(part->program, part->functions, pool, Sources::bound, shared);
      guards_[p].emplace(part->program, known_);
    }
  }

  void bind(Source source, void* memory) override {
    forget(source);
    const std::string& name = sources_of(info_, source.kind)[source.index].name;
    for (std::optional<Executor>& executor : executors_) {
      const int buffer = executor ? executor->find(buffer_role(source.kind), name) : -1;
      if (buffer >= 0) executor->bind(static_cast<uint32_t>(buffer), static_cast<std::byte*>(memory));
    }
  }

  bool bind_output(uint32_t index, void* memory) override {
    constexpr uintptr_t kLine = 64;
    if (!parts_[Part::forward] || !is_movable(*parts_[Part::forward], index)) return false;
    const uint32_t buffer = parts_[Part::forward]->program.outputs[index].buffer;
    Executor& executor = *executors_[Part::forward];
    const bool moves = memory != nullptr && reinterpret_cast<uintptr_t>(memory) % kLine == 0;
    if (moves)
      executor.bind(buffer, static_cast<std::byte*>(memory));
    else
      executor.bind_to_own(buffer);
    return moves;
  }

  void written(Source source) override { forget(source); }
  void forget(Source source) override { known_->forget(buffer_role(source.kind), sources_of(info_, source.kind)[source.index].name); }

  NonFinite run_while_finite(Part part, uint64_t seed, uint64_t step) override {
    const NonFinite fault = executors_[part]->run_while_finite(seed, step, *guards_[part]);
    if (fault == NonFinite::nothing && part != Part::evaluation) last_ = part;
    return fault;
  }

  void run_half(Half half, uint64_t seed, uint64_t step) override {
    const std::optional<size_t>& cut = parts_[Part::forward]->first_half;
    if (!cut) return Runner::run_half(half, seed, step);
    Executor& executor = *executors_[Part::forward];
    const size_t count = executor.program().launches.size();
    if (half == Half::outputs)
      executor.run_launches(0, *cut, seed, step);
    else
      executor.run_launches(*cut, count, seed, step);
    last_ = Part::forward;
  }

  std::string find_fault(Part part, NonFinite what, uint64_t seed, uint64_t step) override {
    Executor& executor = *executors_[part];
    const WatchedRun run{executor.program(), [&](uint32_t buffer) { return executor.address(buffer); },
                         [&](const std::function<bool(size_t)>& goes_on) { executor.run_while(seed, step, goes_on); }};
    return einc::find_fault(run, what);
  }

  TensorView output(uint32_t index) const override { return view(last_, parts_[last_]->program.outputs[index].buffer); }

  TensorView gradient(uint32_t param) const override {
    for (const ExecutableOutput& gradient : parts_[Part::training]->program.gradients)
      if (gradient.name == info_.params[param].name) return view(Part::training, gradient.buffer);
    throw RuntimeFailure(FailureKind::data, fmt::format("'{}' has no gradient: it is not trained", info_.params[param].name));
  }

  TensorView loss(Part part) const override { return view(part, static_cast<uint32_t>(parts_[part]->program.loss)); }

 private:
  TensorView view(Part part, uint32_t buffer) const {
    const ExecutableBuffer& b = parts_[part]->program.buffers[buffer];
    return {b.dtype, b.shape, executors_[part]->address(buffer)};
  }

  const ProgramInfo& info_;
  const PerPart<NativePart>& parts_;
  PerPart<Executor> executors_;
  std::shared_ptr<SourceBounds> known_ = std::make_shared<SourceBounds>();
  PerPart<StepGuard> guards_;
  Part last_ = Part::forward;
};

}  // namespace

NativeProgram::NativeProgram(ProgramInfo program, PerPart<NativePart> parts) : ProgramRep(std::move(program)), parts_(std::move(parts)) {
  EINC_CHECK(info.trains == has(Part::training), "'{}' trains: {}", info.name, info.trains);
}

int64_t NativeProgram::planned_bytes(int threads) const {
  const int64_t bytes = source_bytes(info) + training_bytes(parts_, threads);
  const auto& forward = parts_[Part::forward];
  return forward ? bytes + memory_of(forward->program, Sources::bound, threads) : bytes;
}

std::unique_ptr<Runner> NativeProgram::start(std::shared_ptr<ThreadPool> pool, int) const {
  return std::make_unique<NativeRunner>(info, parts_, pool);
}

}  // namespace einc
