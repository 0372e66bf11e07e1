// SPDX-License-Identifier: Apache-2.0
// Past the session: sources are bound to a runner, so that what devices send and what is stored are seen one by one.
#include "tests/agree/mesh/mesh_run.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "compiler/context/partition_for_mesh.h"
#include "compiler/fuse/form_graph.h"
#include "compiler/ir/print.h"
#include "compiler/ir/read.h"
#include "compiler/ir/verify.h"
#include "compiler/lower/schedule_text.h"
#include "compiler/partition/collectives.h"
#include "compiler/partition/device_program.h"
#include "tests/fuzz/random_program.h"
#include "tests/support/random_check.h"
#include "tests/support/test_gpu.h"

namespace einc {
namespace {

Part part_of_mode(RunMode mode) { return mode == RunMode::training ? Part::training : Part::forward; }

Tensor tensor_of(const TensorView& view) {
  const auto* bytes = static_cast<const std::byte*>(view.data());
  return from_host({view.dtype(), view.shape(), std::vector<std::byte>(bytes, bytes + view.bytes())});
}

// Collectives are launches of the schedule, which reads back with them.
std::string device_schedule_problem(Localized local, DeviceUpdates updates, const Bindings& dims) {
  local.stores = updates;
  const DeviceProgram program = device_program(local);
  if (const auto problems = verify(program.graph); !problems.empty()) return problems.front();
  const FormedGraph formed = form_graph(program.graph, dims, mode_of(updates));
  const auto meetings = std::ranges::count_if(formed.list.kernels, [](const GraphKernel& k) { return k.kernel->collective; });
  if (static_cast<size_t>(meetings) != program.collectives.size()) return "a collective is no launch";
  const std::string text = print_schedule(formed.list, &formed.plan);
  const auto scans = scans_of(formed.list);
  const auto read = read_schedule(text, static_cast<uint32_t>(formed.bound.graph.size()), scans);
  if (const auto* error = std::get_if<LineError>(&read)) return error->message;
  const auto& again = std::get<ScheduleText>(read);
  return print_schedule(again.list, &again.plan) == text ? "" : "it reads back as another schedule";
}

// Sources take elements; those that have them already are not written.
void give(const MeshProgram& program, const ProgramData& data, BoundRun& run) {
  const TensorMap* given[] = {&data.inputs, &data.params, &data.states};
  for (const SourceKind kind : {SourceKind::input, SourceKind::param, SourceKind::state}) {
    const std::vector<TensorInfo>& list = sources_of(program.info, kind);
    for (uint32_t i = 0; i < list.size(); ++i) {
      std::vector<std::byte>& memory = run.memory[static_cast<size_t>(kind)][i].bytes;
      const HostArray next = to_host(convert(given[static_cast<size_t>(kind)]->at(Name(list[i].name)), list[i].dtype));
      if (memory == next.bytes) continue;
      std::ranges::copy(next.bytes, memory.begin());
      run.runner->written({kind, i});
    }
  }
}

std::string sorted_lines(std::vector<std::string> lines) {
  std::ranges::sort(lines);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::shared_ptr<const CudaMeshProgram> compile_within(const Graph& graph, const Bindings& dims, RunMode mode,
                                                      const LibraryLimits& library) {
  use_test_gpu();
  ProgramGraphs graphs;
  graphs.dims = dims;
  graphs.parts[part_of_mode(mode)] = graph;
  return cuda_mesh_program(graphs, test_cubin_folder(), Scheduling::all, nullptr, library);
}

}  // namespace

std::shared_ptr<const MeshProgram> compile_as(const Scheduling& scheduling, const Graph& graph, const Bindings& dims, RunMode mode) {
  ProgramGraphs graphs;
  graphs.dims = dims;
  graphs.parts[part_of_mode(mode)] = graph;
  if (mode == RunMode::training) graphs.parts[Part::training]->loss = graph.loss;
  return mesh_program(graphs, {}, scheduling);
}

std::shared_ptr<const MeshProgram> compile_for_mesh(const Graph& graph, const Bindings& dims, RunMode mode) {
  return compile_as(Scheduling::all, graph, dims, mode);
}

std::shared_ptr<const CudaMeshProgram> compile_for_gpus(const Graph& graph, const Bindings& dims, RunMode mode) {
  return compile_within(graph, dims, mode, {});
}

std::shared_ptr<const CudaMeshProgram> compile_with_library(const Graph& graph, const Bindings& dims, RunMode mode) {
  return compile_within(graph, dims, mode, {1, 1, 1});
}

BoundRun start_on_mesh(const MeshProgram& program, const ProgramData& data, int threads) {
  BoundRun run;
  const TensorMap* given[] = {&data.inputs, &data.params, &data.states};
  run.runner = program.start(std::make_shared<ThreadPool>(threads), kDefaultDevice);
  for (const SourceKind kind : {SourceKind::input, SourceKind::param, SourceKind::state}) {
    std::vector<HostArray>& memory = run.memory[static_cast<size_t>(kind)];
    for (const TensorInfo& tensor : sources_of(program.info, kind))
      memory.push_back(to_host(convert(given[static_cast<size_t>(kind)]->at(Name(tensor.name)), tensor.dtype)));
    for (uint32_t i = 0; i < memory.size(); ++i) run.runner->bind({kind, i}, memory[i].bytes.data());
  }
  return run;
}

Ended ended(const MeshProgram& program, const ProgramData& faulty, const ProgramData& good, int times) {
  const auto step = [](BoundRun& run) {
    const NonFinite fault = run.runner->run_while_finite(Part::training, 1, 0);
    for (const SourceKind kind : {SourceKind::param, SourceKind::state})
      for (uint32_t i = 0; i < run.memory[static_cast<size_t>(kind)].size(); ++i) run.runner->fetch({kind, i});
    return fault;
  };
  BoundRun alone = start_on_mesh(program, good, 1), run = start_on_mesh(program, faulty, 1);
  step(alone);
  Ended end;
  for (int time = 0; time < times; ++time) {
    give(program, faulty, run);
    const NonFinite fault = step(run);
    give(program, good, run);
    bool as_alone = step(run) == NonFinite::nothing;
    for (const int kind : {1, 2})
      as_alone = as_alone && std::ranges::equal(run.memory[kind], alone.memory[kind], {}, &HostArray::bytes, &HostArray::bytes);
    if (time > 0 && fault == end.fault && as_alone == end.nothing_stored) continue;
    end = {fault, as_alone};
    if (time > 0) break;
  }
  return end;
}

size_t in_places_of_their_own(const MeshPlan& plan) {
  return static_cast<size_t>(
      std::ranges::count_if(plan.updates, [&](const MeshUpdate& u) { return u.value != plan.sources[u.source].value; }));
}

MeshRun run_on_mesh(const MeshProgram& program, const TensorMap& inputs, const TensorMap& params, const TensorMap& states,
                    const InterpretOptions& options, int threads) {
  BoundRun bound = start_on_mesh(program, {{}, inputs, params, states, options}, threads);
  const auto& [memory, runner] = bound;
  const Part part = part_of_mode(options.mode);
  MeshRun run;
  run.fault = runner->run_while_finite(part, options.seed, options.step);
  run.sent = bytes_sent(*runner, part);
  if (run.fault != NonFinite::nothing) return run;
  const MeshPlan& plan = *program.parts()[part];
  for (uint32_t i = 0; i < program.info.outputs.size(); ++i)
    run.values.outputs.emplace_back(Name(program.info.outputs[i].name), tensor_of(runner->output(i)));
  if (plan.loss >= 0 && (part == Part::training || plan.outputs.empty())) run.values.loss = tensor_of(runner->loss(part));
  for (uint32_t i = 0; part == Part::training && i < program.info.params.size(); ++i)
    if (std::ranges::any_of(plan.gradients, [&](const auto& g) { return g.first == program.info.params[i].name; }))
      run.values.gradients[Name(program.info.params[i].name)] = tensor_of(runner->gradient(i));
  for (const SourceKind kind : {SourceKind::param, SourceKind::state})
    for (uint32_t i = 0; i < memory[static_cast<size_t>(kind)].size(); ++i) {
      runner->fetch({kind, i});
      TensorMap& map = kind == SourceKind::param ? run.values.params : run.values.states;
      map[Name(sources_of(program.info, kind)[i].name)] = from_host(memory[static_cast<size_t>(kind)][i]);
    }
  return run;
}

std::string foretold_bytes(const Graph& graph, const Bindings& dims) {
  const auto made = partition_for_mesh(graph, dims);
  const Bindings values = graph.dims.bind(dims).values;
  std::vector<std::string> lines;
  for (const Collective& c : collectives_of(std::get<Partitioned>(made)))
    lines.push_back(
        fmt::format("{} {} {}", to_string(c.kind), c.mesh_axis, (c.bytes * graph.mesh.devices()).evaluate_integer(values).value()));
  return sorted_lines(std::move(lines));
}

std::string counted_bytes(const std::vector<SentBytes>& sent) {
  std::vector<std::string> lines;
  for (const SentBytes& s : sent) lines.push_back(fmt::format("{} {} {}", to_string(s.kind), s.mesh_axis, s.bytes));
  return sorted_lines(std::move(lines));
}

int64_t most_held(const MeshPlan& plan, CollectiveKind kind) {
  std::vector<int64_t> change(plan.steps.size() + 1, 0);
  for (size_t t = 0; t < plan.steps.size(); ++t) {
    const DeviceStep& start = plan.steps[t];
    if (start.act != DeviceAct::start || plan.collectives[start.index].kind != kind) continue;
    const uint32_t value = plan.collectives[start.index].to;
    size_t last = t;
    for (size_t u = t; u < plan.steps.size(); ++u) {
      const DeviceStep& step = plan.steps[u];
      if (step.act == DeviceAct::start && plan.collectives[step.index].from == value) last = u;
      if (step.act != DeviceAct::compute) continue;
      for (const BoundValue& bound : plan.code.bound)
        for (uint32_t l = step.first; l < step.last; ++l)
          if (bound.value == value && may_run(plan.code, step, l) &&
              std::ranges::count(plan.code.compute.program.launches[l].buffers, bound.buffer) > 0)
            last = u;
    }
    change[t] += plan.values[value].bytes;
    change[last + 1] -= plan.values[value].bytes;
  }
  int64_t now = 0, most = 0;
  for (const int64_t by : change) most = std::max(most, now += by);
  return most;
}

std::string device_graph_problem(const Graph& graph, const Bindings& dims) {
  const Localized local = localize(std::get<Partitioned>(partition_for_mesh(graph, dims)));
  const Graph& device = local.graph;
  if (const auto problems = verify(device); !problems.empty()) return problems.front();
  const std::string text = print_graph(device);
  const auto again = read_graph(text);
  if (const auto* error = std::get_if<GraphReadError>(&again)) return error->message;
  if (print_graph(std::get<Graph>(again)) != text) return "it reads back as another graph";
  for (const DeviceUpdates updates : {DeviceUpdates::apart, DeviceUpdates::in_place})
    if (const std::string problem = device_schedule_problem(local, updates, dims); !problem.empty()) return problem;
  return "";
}

InterpretResult interpreted(const Graph& graph, const ProgramData& data) {
  return interpret(graph, data.dims, data.inputs, data.params, data.states, data.options);
}

InterpretResult as_result(CpuRun run, const InterpretResult& wanted) {
  std::erase_if(run.params, [&](const auto& param) { return !wanted.params.contains(param.first); });
  InterpretResult result;
  result.outputs = std::move(run.outputs);
  result.loss = std::move(run.loss);
  result.params = std::move(run.params);
  result.states = std::move(run.states);
  result.gradients = std::move(run.gradients);
  return result;
}

std::string run_difference(const MeshProgram& program, const ProgramData& data, const InterpretResult& wanted, double tolerance) {
  const MeshRun run = run_on_mesh(program, data.inputs, data.params, data.states, data.options, 2);
  if (run.fault != NonFinite::nothing) return "not finite";
  return result_difference(as_result(run.values, wanted), wanted, tolerance);
}

std::string wrong_run(const std::string& text, uint64_t seed, const CompileForMesh& compile) {
  std::string problem;
  std::optional<Wanted> given = interpret_text(text, seed, problem, seed % 4 == 0 ? RunMode::inference : RunMode::training);
  if (!given) return problem;
  given->graph.mesh = random_mesh(given->graph, given->graph.dims.bind({}).values, seed);
  if (std::holds_alternative<NoPartition>(partition_for_mesh(given->graph, {}))) return "";
  std::shared_ptr<const MeshProgram> program;
  try {
    program = compile(given->graph, {}, given->options.mode);
  } catch (const Error& error) {
    return std::string("program: ") + error.what();
  }
  const MeshRun run = run_on_mesh(*program, given->inputs, given->params, given->states, given->options, 1);
  if (run.fault != NonFinite::nothing) return "";
  if (counted_bytes(run.sent) != foretold_bytes(given->graph, {})) return "bytes: not those foretold";
  const std::string certain = certain_difference(*given, run.values);
  return certain.empty() ? "" : "value: " + certain;
}

}  // namespace einc
