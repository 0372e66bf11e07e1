// SPDX-License-Identifier: Apache-2.0
// `einc run FILE`: one run of a program on data, on the processor or by the reference interpreter: outputs and the loss.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>

#include "compiler/api/mesh_cuda.h"
#include "compiler/api/mesh_native.h"
#include "compiler/api/reference_fault.h"
#include "compiler/driver/array_text.h"
#include "compiler/driver/check_outputs.h"
#include "compiler/driver/command_line.h"
#include "compiler/driver/open_program.h"
#include "compiler/driver/run_data.h"
#include "compiler/driver/targets.h"
#include "compiler/ir/interpret_ops.h"
#include "compiler/pipeline/cpu_program.h"
#include "compiler/pipeline/cuda_program.h"
#include "compiler/pipeline/mesh_program.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/simplify/dead.h"
#include "runtime/base/failure.h"
#include "runtime/cuda/cuda_executor.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/find_fault.h"
#include "runtime/executor/session.h"

namespace einc {
namespace {

struct RunRequest {
  std::string file, names, target = "cpu", arithmetic = "f64", mode = "inference", precision, mesh, shard;
  std::vector<std::string> dims, import_folders, inputs, params, weights, outputs;
  uint64_t seed = 0;
  int threads = 0;
};

// Free dims that are an input's axis take their value from its file.
void bind_from_shapes(const Graph& graph, const std::unordered_map<Name, HostArray>& inputs, Bindings& dims) {
  for (const Node& node : graph.nodes) {
    if (node.op != Op::input) continue;
    const auto found = inputs.find(node.as<InputAttr>().name);
    if (found == inputs.end() || found->second.shape.size() != node.type.axes.size()) continue;
    for (size_t i = 0; i < node.type.axes.size(); ++i)
      for (const Dim& dim : graph.dims.dims())
        if (dim.kind == DimKind::free && dims.count(dim.name) == 0 && node.type.axes[i].size == Poly::dim(dim.name))
          dims[dim.name] = found->second.shape[i];
  }
}

void print_summary(const std::string& name, const Tensor& tensor) {
  std::string shape;
  for (int64_t s : tensor.shape) shape += (shape.empty() ? "" : " ") + std::to_string(s);
  fmt::print("{}: {}[{}]{}{}\n", name, to_string(tensor.dtype), shape, tensor.shape.size() > 1 ? "\n" : " ", array_text(tensor));
}

struct RunValues {
  std::vector<std::pair<Name, Tensor>> outputs;
  std::optional<Tensor> loss;
};

[[noreturn]] void refuse(NonFinite fault, const std::optional<Tensor>& loss, const std::string& where) {
  const std::string what = loss ? describe(fault, "the loss", loss->reals.front()) : describe(fault, "", 0);
  throw RuntimeFailure(FailureKind::numeric, what + (where.empty() ? "" : ": " + where));
}

// What the reference computes: the graph as elaborated, or to see how roundings add up, that graph with a dtype for every node.
Graph reference_graph(const RunRequest& request, const Compilation& c, PipelineOptions options) {
  if (request.arithmetic == "f64") return remove_dead(*c.elaborated, options.roots);
  options.disabled = {"simplify"};
  return run_passes(*c.elaborated, options);
}

RunValues run_reference(const RunRequest& request, const Compilation& c, const PipelineOptions& pipeline, const Bindings& dims,
                        const RunData& data) {
  const Graph graph = reference_graph(request, c, pipeline);
  const Arithmetic arithmetic = request.arithmetic == "f64" ? Arithmetic::exact : Arithmetic::stored;
  TensorMap inputs, params = initial_params(graph, dims, request.seed, arithmetic),
                    states = initial_states(graph, dims, request.seed, arithmetic);
  const Bindings bound = bind_dims(graph, dims);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op != Op::input && node.op != Op::param && node.op != Op::state) continue;
    const std::optional<HostArray> value = data.value_of(graph, NodeId{i}, shape_of(graph, NodeId{i}, bound));
    if (!value) continue;
    if (node.op == Op::input) inputs[node.as<InputAttr>().name] = from_host(*value);
    if (node.op == Op::param) params[node.as<ParamAttr>().path] = from_host(*value);
    if (node.op == Op::state) states[node.as<StateAttr>().path] = from_host(*value);
  }
  InterpretOptions options;
  options.arithmetic = arithmetic;
  options.mode = request.mode == "training" ? RunMode::training : RunMode::inference;
  options.seed = request.seed;
  const auto run = [&](std::vector<NodeId> watch) {
    options.watch = std::move(watch);
    return interpret(graph, dims, inputs, params, states, options);
  };
  InterpretResult result = run({});
  if (const ReferenceFault fault = reference_fault(graph, result, params, states); fault.means != NonFinite::nothing)
    refuse(fault.means, result.loss, trace_fault(graph, fault.node, run));
  EINC_CHECK(result.outputs.size() == c.graph->outputs.size(), "a pass adds or drops outputs");
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    Tensor& output = result.outputs[i].second;
    output = convert(output, c.graph->type(c.graph->outputs[i].node).dtype);
  }
  return {std::move(result.outputs), std::move(result.loss)};
}

// `machine`: an executor of the program, its params and states initialised.
template <class Machine>
RunValues run_on(Machine& machine, const std::function<WatchedRun()>& watched, const BoundGraph& bound, const RunRequest& request,
                 const RunData& data) {
  const Graph& graph = bound.graph;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if ((node.op != Op::input && node.op != Op::param && node.op != Op::state) || !bound.live[i]) continue;
    const Shape& shape = bound.shapes[i];
    const std::optional<HostArray> value = data.value_of(graph, NodeId{i}, {shape.begin(), shape.end()});
    if (!value) continue;
    const int buffer = node.op == Op::input   ? machine.find(BufferRole::input, node.as<InputAttr>().name.str())
                       : node.op == Op::param ? machine.find(BufferRole::param, node.as<ParamAttr>().path.str())
                                              : machine.find(BufferRole::state, node.as<StateAttr>().path.str());
    machine.set(static_cast<uint32_t>(buffer), *value);
  }
  const Executable& program = machine.program();
  StepGuard guard(program, std::make_shared<SourceBounds>());
  const NonFinite fault = machine.run_while_finite(request.seed, 0, guard);
  RunValues values;
  if (program.loss >= 0) values.loss = from_host(machine.get(static_cast<uint32_t>(program.loss)));
  if (fault != NonFinite::nothing) refuse(fault, values.loss, find_fault(watched(), fault));
  for (const ExecutableOutput& o : program.outputs) values.outputs.emplace_back(Name(o.name), from_host(machine.get(o.buffer)));
  return values;
}

RunMode mode_of(const RunRequest& request) { return request.mode == "training" ? RunMode::training : RunMode::inference; }

int threads_of(const RunRequest& request) {
  return request.threads > 0 ? request.threads : static_cast<int>(std::thread::hardware_concurrency());
}

RunValues run_on_cpu(const RunRequest& request, const Graph& graph, const Bindings& dims, const RunData& data) {
  CpuOptions options;
  options.mode = mode_of(request);
  const CpuProgram cpu(graph, dims, options);
  Executor executor(cpu.program(), cpu.functions(), threads_of(request));
  executor.initialize(request.seed);
  const auto watched = [&] {
    return WatchedRun{executor.program(), [&](uint32_t buffer) { return executor.address(buffer); },
                      [&](const std::function<bool(size_t)>& goes_on) { executor.run_while(request.seed, 0, goes_on); }};
  };
  return run_on(executor, watched, cpu.lowered().bound, request, data);
}

RunValues run_on_gpu(const RunRequest& request, const Graph& graph, const Bindings& dims, const RunData& data) {
  CudaOptions options;
  options.gpu = cuda::Gpu::get().shape();
  options.mode = mode_of(request);
  options.attention = cuda::AttentionLibrary::get();
  const std::unique_ptr<CudaProgramText> program = compile_for_cuda(graph, dims, options);
  FileCache cache(FileCache::default_folder());
  const CudaKernels kernels(program->executable, cache, threads_of(request));
  CudaExecutor executor(program->executable, kernels);
  ThreadPool pool(threads_of(request));
  executor.initialize(pool, request.seed);
  HostArray held;
  const auto watched = [&] {
    return WatchedRun{
        executor.program(),
        [&](uint32_t buffer) {
          held = executor.get(buffer);
          return held.bytes.data();
        },
        [&](const std::function<bool(size_t)>& goes_on) { executor.run_while(request.seed, 0, goes_on, CudaExecutor::Products::apart); },
        program->executable.orders, program->executable.unfinished};
  };
  return run_on(executor, watched, program->bound, request, data);
}

// Part by part, each device's in turn.
RunValues run_over_mesh(const RunRequest& request, const Graph& graph, const Bindings& dims, const RunData& data) {
  const Part part = request.mode == "training" ? Part::training : Part::forward;
  ProgramGraphs graphs;
  graphs.dims = dims;
  graphs.parts[part] = graph;
  const std::filesystem::path cache = FileCache::default_folder();
  const std::shared_ptr<const MeshProgram> program =
      request.target == "cuda" ? cuda_mesh_program(graphs, cache, Scheduling::all) : mesh_program(graphs, cache, Scheduling::all);
  SessionRep session(*program, threads_of(request));
  session.initialize(request.seed);
  const Bindings bound = bind_dims(graph, dims);
  std::array<uint32_t, 3> next{};  // a program's sources stand in the order of its nodes
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Op op = graph.nodes[i].op;
    if (op != Op::input && op != Op::param && op != Op::state) continue;
    const SourceKind kind = op == Op::input ? SourceKind::input : op == Op::param ? SourceKind::param : SourceKind::state;
    const Source source{kind, next[static_cast<size_t>(kind)]++};
    if (const auto value = data.value_of(graph, NodeId{i}, shape_of(graph, NodeId{i}, bound))) session.set(source, value->bytes.data());
  }
  const auto runner = program->start(std::make_shared<ThreadPool>(threads_of(request)), kDefaultDevice);
  session.lend(*runner);
  const auto tensor = [](const TensorView& view) {
    const auto* bytes = static_cast<const std::byte*>(view.data());
    return from_host({view.dtype(), view.shape(), std::vector<std::byte>(bytes, bytes + view.bytes())});
  };
  const NonFinite fault = runner->run_while_finite(part, request.seed, 0);
  RunValues values;
  if (program->parts()[part]->loss >= 0) values.loss = tensor(runner->loss(part));
  if (fault != NonFinite::nothing) refuse(fault, values.loss, runner->find_fault(part, fault, request.seed, 0));
  for (uint32_t i = 0; i < program->info.outputs.size(); ++i)
    values.outputs.emplace_back(Name(program->info.outputs[i].name), tensor(runner->output(i)));
  return values;
}

// Outputs may share one file that holds several arrays.
bool check_files(const Compilation& c, const DataFiles& given) {
  NamedFiles inputs = sources_of(c), outputs;
  for (const auto& [name, path] : given.inputs) inputs.emplace_back("--input " + name, path);
  for (const auto& [name, path] : given.params) inputs.emplace_back("--param " + name, path);
  for (const std::string& path : given.weights) inputs.emplace_back("--weights", path);
  inputs.emplace_back("--rename", given.names);
  for (const auto& [name, path] : given.outputs)
    if (std::none_of(outputs.begin(), outputs.end(), [&path = path](const auto& other) { return other.second == path; }))
      outputs.emplace_back("--output " + name, path);
  return check_outputs(outputs, inputs);
}

ExitStatus run_program(const RunRequest& request, Compilation& c, const PipelineOptions& options, Bindings dims, const DataFiles& given) {
  const Graph& graph = *c.graph;
  if (!check_files(c, given)) return ExitStatus::wrong_usage;
  std::optional<OutputFiles> outputs = OutputFiles::open(graph, given.outputs);
  if (!outputs) return ExitStatus::wrong_usage;
  const std::optional<RunData> data = RunData::open(graph, given);
  if (!data) return ExitStatus::wrong_usage;
  bind_from_shapes(graph, data->inputs(), dims);
  if (!dims_are_set(graph, dims)) return ExitStatus::wrong_usage;
  if (!graph.mesh.empty() && request.target != "reference") {
    if (!partition_program(c, dims)) {
      print_diagnostics(c.sources, c.diagnostics, DiagnosticsForm::text, Severity::error);
      return ExitStatus::wrong_program;
    }
  }
  RunValues result = request.target != "reference" && !graph.mesh.empty() ? run_over_mesh(request, graph, dims, *data)
                     : request.target == "cpu"                            ? run_on_cpu(request, graph, dims, *data)
                     : request.target == "cuda"                           ? run_on_gpu(request, graph, dims, *data)
                                                                          : run_reference(request, c, options, dims, *data);
  const bool loss_is_output =
      std::any_of(graph.outputs.begin(), graph.outputs.end(), [&](const Output& o) { return o.node == graph.loss; });
  if (result.loss && !loss_is_output) result.outputs.emplace_back(Name("loss"), std::move(*result.loss));
  for (const auto& [name, value] : result.outputs)
    if (outputs->wants(name)) outputs->take(name, to_host(value));
  outputs->write();
  for (const auto& [name, value] : result.outputs)
    if (!outputs->wants(name)) print_summary(name.str(), value);
  return ExitStatus::done;
}

}  // namespace

ExitStatus run_command(Arguments arguments) {
  CLI::App app("Runs a program once on data. Params that no file gives start from their initialisers.", "einc run");
  RunRequest r;
  app.add_option("FILE", r.file, "the program")->required();
  app.add_option("-D", r.dims, "set a dim: name=value")->allow_extra_args(false)->type_name("NAME=VALUE");
  add_import_folders(app, r.import_folders);
  app.add_option("--input", r.inputs,
                 "an input's values: name=x.npy; of an .npz or .safetensors file the array of that name, or the only one")
      ->allow_extra_args(false)
      ->type_name("NAME=FILE");
  app.add_option("--param", r.params, "a param's values: path=w.npy (or .npz, .safetensors)")
      ->allow_extra_args(false)
      ->type_name("PATH=FILE");
  app.add_option("--weights", r.weights, "params' and states' values by path: a .safetensors or .npz file")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app.add_option("--rename", r.names, "a file of lines `their.name -> our.name`, for weights from elsewhere: see runtime/training.md")
      ->type_name("FILE")
      ->needs("--weights");
  app.add_option("--output", r.outputs, "where to write an output: name=y.npy (or .npz, .safetensors); others are summarised")
      ->allow_extra_args(false)
      ->type_name("NAME=FILE");
  app.add_option("--target", r.target, kTargetHelp)->check(one_of(kTargets));
  app.add_option("--arithmetic", r.arithmetic, "arithmetic of the reference: f64, or stored, which rounds every result to its dtype")
      ->check(one_of({"f64", "stored"}));
  app.add_option("--mode", r.mode, "inference, or training: dropout on, params updated")->check(one_of({"inference", "training"}));
  add_precision(app, r.precision);
  add_mesh(app, r.mesh, r.shard);
  app.add_option("--seed", r.seed, "seed of initial values and random draws")->check(seed_check());
  app.add_option("--threads", r.threads, "threads of the processor; all by default. The result is the same for any number")
      ->check(whole_number(1, kMaxInt));
  if (auto status = parse_arguments(app, arguments)) return *status;
  const auto dims = parse_dim_settings(r.dims);
  const auto inputs = parse_assignments(r.inputs, "--input"), params = parse_assignments(r.params, "--param"),
             outputs = parse_assignments(r.outputs, "--output");
  if (!dims || !inputs || !params || !outputs) return ExitStatus::wrong_usage;
  PipelineOptions options =
      program_options(*dims, r.mode == "training" ? Roots::training : Roots::inference, r.precision, r.import_folders);
  options.mesh = r.mesh, options.shard = r.shard;
  auto opened = open_program(r.file, options);
  if (const auto* status = std::get_if<ExitStatus>(&opened)) return *status;
  return run_program(r, std::get<Compilation>(opened), options, *dims, {*inputs, *params, *outputs, r.weights, r.names});
}

}  // namespace einc
