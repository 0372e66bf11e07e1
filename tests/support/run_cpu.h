// SPDX-License-Identifier: Apache-2.0
// Runs a graph on the processor and gives what the interpreter gives.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/pipeline/cpu_program.h"
#include "runtime/executor/executor.h"
#include "tests/support/guarded_machine.h"
#include "tests/support/run_graph.h"

namespace einc {

struct CpuRun {
  std::vector<std::pair<Name, Tensor>> outputs;
  std::optional<Tensor> loss;
  TensorMap params, states, gradients;
};

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape && a.ints == b.ints && a.reals.size() == b.reals.size() &&
         std::equal(a.reals.begin(), a.reals.end(), b.reals.begin(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}
inline bool same_bits(const TensorMap& a, const TensorMap& b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& x) { return same_bits(x.second, b.at(x.first)); });
}
inline bool same_bits(const CpuRun& a, const CpuRun& b) {
  const bool outputs = std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(),
                                  [](const auto& x, const auto& y) { return same_bits(x.second, y.second); });
  const bool losses = a.loss.has_value() == b.loss.has_value() && (!a.loss || same_bits(*a.loss, *b.loss));
  return outputs && losses && same_bits(a.params, b.params) && same_bits(a.states, b.states) && same_bits(a.gradients, b.gradients);
}

// `Machine`: an Executor, or what has its find, set, run and get.
template <class Machine>
CpuRun run_on(Machine& machine, const Executable& program, const TensorMap& inputs, const TensorMap& params, const TensorMap& states,
              const InterpretOptions& options) {
  const auto give = [&](BufferRole role, const TensorMap& values) {
    for (const auto& [name, value] : values)
      if (const int b = machine.find(role, name.str()); b >= 0) {
        const auto& buffer = program.buffers[static_cast<size_t>(b)];
        machine.set(static_cast<uint32_t>(b), to_host(convert(value, buffer.dtype)));
      }
  };
  give(BufferRole::input, inputs);
  give(BufferRole::param, params);
  give(BufferRole::state, states);
  machine.run(options.seed, options.step);
  CpuRun run;
  for (const ExecutableOutput& o : program.outputs) run.outputs.emplace_back(Name(o.name), from_host(machine.get(o.buffer)));
  // An inference leaves gradients, and beside outputs the loss, no longer than it needs them itself.
  const bool trains = options.mode == RunMode::training;
  if (program.loss >= 0 && (trains || program.outputs.empty())) run.loss = from_host(machine.get(static_cast<uint32_t>(program.loss)));
  if (trains)
    for (const ExecutableOutput& g : program.gradients) run.gradients[Name(g.name)] = from_host(machine.get(g.buffer));
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const ExecutableBuffer& buffer = program.buffers[b];
    if (buffer.role == BufferRole::param) run.params[Name(buffer.name)] = from_host(machine.get(b));
    if (buffer.role == BufferRole::state) run.states[Name(buffer.name)] = from_host(machine.get(b));
  }
  return run;
}

// "" or a param or state whose least and largest elements are not what launches have told that store nothing else.
inline std::string wrong_bound(const GuardedMachine& machine, const Executable& program) {
  for (const BoundedUpdate& update : program.bounded) {
    const Tensor stored = from_host(machine.get(update.target));
    const double least = from_host(machine.get(update.least)).reals.at(0), most = from_host(machine.get(update.most)).reals.at(0);
    const bool finite = std::ranges::all_of(stored.reals, [](double x) { return std::isfinite(x); });
    const auto [low, high] = std::ranges::minmax(stored.reals);
    if (finite ? least != low || most != high : std::isfinite(least) && std::isfinite(most))
      return fmt::format("'{}' is from {} to {}, told from {} to {}", program.buffers[update.target].name, low, high, least, most);
  }
  return "";
}

// In planned memory on `threads` threads, then twice among guards. Throws GuardHit when the runs differ in a bit.
inline CpuRun run_program(const Executable& program, const std::vector<KernelFunction*>& functions, const TensorMap& inputs,
                          const TensorMap& params, const TensorMap& states, const InterpretOptions& options, int threads) {
  Executor executor(program, functions, threads);
  const CpuRun run = run_on(executor, program, inputs, params, states, options);
  for (const Guard guard : {Guard::after, Guard::before}) {
    GuardedMachine machine(program, functions, guard);
    if (!same_bits(run, run_on(machine, program, inputs, params, states, options)))
      throw GuardHit("memory of its own gives another result");
    const bool looks = std::ranges::all_of(functions, [](KernelFunction* f) { return f != nullptr; });
    if (const std::string problem = looks ? wrong_bound(machine, program) : ""; !problem.empty()) throw GuardHit(problem);
  }
  return run;
}

inline CpuRun run_cpu(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params, const TensorMap& states,
                      const InterpretOptions& options = {}, int threads = 1, Scheduling scheduling = Scheduling::all) {
  CpuOptions cpu;
  cpu.mode = options.mode;
  cpu.scheduling = scheduling;
  cpu.cache.clear();
  const CpuProgram program(graph, dims, cpu);
  return run_program(program.program(), program.functions(), inputs, params, states, options, threads);
}

}  // namespace einc
