// Runs a graph on the processor and gives what the interpreter gives.
#pragma once
#include "compiler/pipeline/cpu_program.h"
#include "runtime/executor/executor.h"
#include "tests/support/run_graph.h"

namespace einc {

struct CpuRun {
  std::vector<std::pair<Name, Tensor>> outputs;
  std::optional<Tensor> loss;
  TensorMap params, states, gradients;
};

inline CpuRun run_program(const Executable& program, const std::vector<KernelFunction*>& functions, const TensorMap& inputs,
                          const TensorMap& params, const TensorMap& states, const InterpretOptions& options, int threads) {
  Executor executor(program, functions, threads);
  const auto give = [&](BufferRole role, const TensorMap& values) {
    for (const auto& [name, value] : values)
      if (const int b = executor.find(role, name.str()); b >= 0) {
        const auto& buffer = program.buffers[static_cast<size_t>(b)];
        executor.set(static_cast<uint32_t>(b), to_host(convert(value, buffer.dtype)));
      }
  };
  give(BufferRole::input, inputs);
  give(BufferRole::param, params);
  give(BufferRole::state, states);
  executor.run(options.seed, options.step);
  CpuRun run;
  for (const ExecutableOutput& o : program.outputs) run.outputs.emplace_back(Name(o.name), from_host(executor.get(o.buffer)));
  if (program.loss >= 0) run.loss = from_host(executor.get(static_cast<uint32_t>(program.loss)));
  for (const ExecutableOutput& g : program.gradients) run.gradients[Name(g.name)] = from_host(executor.get(g.buffer));
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const ExecutableBuffer& buffer = program.buffers[b];
    if (buffer.role == BufferRole::param) run.params[Name(buffer.name)] = from_host(executor.get(b));
    if (buffer.role == BufferRole::state) run.states[Name(buffer.name)] = from_host(executor.get(b));
  }
  return run;
}

inline CpuRun run_cpu(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params, const TensorMap& states,
                      const InterpretOptions& options = {}, int threads = 1, Fusion fusion = Fusion::on) {
  CpuOptions cpu;
  cpu.mode = options.mode;
  cpu.fusion = fusion;
  cpu.cache.clear();
  const CpuProgram program(graph, dims, cpu);
  return run_program(program.program(), program.functions(), inputs, params, states, options, threads);
}

}  // namespace einc
