// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/compile_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "compiler/api/mesh_cuda.h"
#include "compiler/api/mesh_native.h"
#include "compiler/fuse/pullback_halves.h"
#include "compiler/ir/init_arguments.h"
#include "compiler/pipeline/cpu_program.h"
#include "compiler/pipeline/cuda_program.h"
#include "compiler/simplify/dead.h"
#include "dsl/render.h"
#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/cuda/cuda_program.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/native_program.h"

namespace einc {
namespace {

Policy policy_of(Precision precision) {
  switch (precision) {
    case Precision::as_written:
      return Policy::inherit;
    case Precision::f32:
      return Policy::f32;
    case Precision::tf32:
      return Policy::tf32;
    case Precision::bf16:
      return Policy::bf16;
    case Precision::f16:
      return Policy::f16;
    case Precision::fp8:
      return Policy::fp8;
  }
  return Policy::inherit;
}

Error::Place place_of(const SourceMap& sources, Span span) {
  if (!span.known()) return {};
  const SourceFile& file = sources.file(span.file);
  const Location begin = file.locate(span.begin), end = file.locate(span.end);
  return {file.name(), begin.line, begin.column, end.line, end.column};
}

class InfoBuilder {
 public:
  InfoBuilder(const Graph& graph, const Bindings& given) : graph_(graph), dims_(graph.dims.bind(given).values) {}

  ProgramInfo run(bool trains) {
    info_.name = graph_.name.str();
    info_.trains = trains;
    // Sizes of the mesh are how the program is carried out, not what it is.
    for (const Dim& dim : graph_.dims.dims())
      if (std::ranges::none_of(graph_.mesh.axes, [&](const MeshAxis& axis) { return axis.name == dim.name; }))
        info_.dims.emplace_back(dim.name.str(), dims_.at(dim.name));
    for (const Node& node : graph_.nodes) add_source(node);
    for (const Output& output : graph_.outputs) info_.outputs.push_back(tensor(output.name, graph_.type(output.node)));
    return std::move(info_);
  }

 private:
  TensorInfo tensor(Name name, const Type& type) const {
    TensorInfo info{name.str(), type.dtype == DType::real ? DType::f32 : type.dtype, {}, {}};
    for (const Axis& axis : type.axes) {
      info.axes.push_back(axis.name.str());
      info.shape.push_back(axis.size.evaluate_integer(dims_).value());
    }
    return info;
  }

  Initializer initializer(const Init& init) const {
    const auto arguments = init_arguments(init, dims_);
    EINC_CHECK(arguments.has_value(), "an initialiser has no value");
    return {init.kind, *arguments};
  }

  void add_source(const Node& node) {
    if (node.op == Op::input) info_.inputs.push_back(tensor(node.as<InputAttr>().name, node.type));
    if (node.op == Op::param) {
      info_.params.push_back(tensor(node.as<ParamAttr>().path, node.type));
      info_.param_inits.push_back(initializer(node.as<ParamAttr>().init));
    }
    if (node.op == Op::state) {
      info_.states.push_back(tensor(node.as<StateAttr>().path, node.type));
      info_.state_inits.push_back(initializer(node.as<StateAttr>().init));
    }
  }

  const Graph& graph_;
  Bindings dims_;
  ProgramInfo info_;
};

Roots roots_of(Part part, Roots training, bool training_mode) {
  if (part == Part::forward) return training_mode ? Roots::training : Roots::inference;
  return part == Part::evaluation ? Roots::evaluation : training;
}

// What a session holds at once, evaluations (--val) included, which share a step's memory and may need more of it.
template <class Program>
std::shared_ptr<const Program> within(const std::optional<MemoryLimit>& limit, std::shared_ptr<const Program> program) {
  if (!limit) return program;
  if (const int64_t bytes = program->planned_bytes(limit->threads) + limit->taken; bytes > limit->bytes)
    throw RuntimeFailure(FailureKind::resource,
                         fmt::format("the program takes {} bytes: more than the limit of {} bytes; what runs beside its training step "
                                     "needs them, too",
                                     bytes, limit->bytes));
  return program;
}

// Keeps the code that its functions lie in.
class CompiledHere : public NativeProgram {
 public:
  CompiledHere(ProgramInfo program, PerPart<NativePart> parts, std::vector<NativeCode> code)
      : NativeProgram(std::move(program), std::move(parts)), code_(std::move(code)) {}

 private:
  std::vector<NativeCode> code_;
};

}  // namespace

PipelineOptions pipeline_options(const CompileOptions& options) {
  PipelineOptions pipeline;
  for (const auto& [name, value] : options.dims) pipeline.dims[Name(name)] = value;
  pipeline.precision = policy_of(options.precision);
  if (options.purpose == Purpose::pullback) pipeline.pullback = Pullback::of_outputs;
  pipeline.training_mode = options.training_mode;
  for (const std::filesystem::path& folder : options.import_folders) pipeline.import_folders.push_back(folder.string());
  return pipeline;
}

std::span<const Part> parts_for(Purpose purpose) {
  static constexpr Part kAll[] = {Part::forward, Part::evaluation, Part::training};
  return std::span(kAll).first(purpose == Purpose::training ? 3 : 1);
}

RunMode run_mode(Part part) { return part == Part::training || part == Part::accumulation ? RunMode::training : RunMode::inference; }

ProgramGraphs make_graphs(Compilation compilation, const PipelineOptions& options, std::span<const Part> parts) {
  if (!compilation.graph) {
    std::string text = render_text(compilation.sources, compilation.diagnostics);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    const auto& list = compilation.diagnostics.list();
    const bool unread = !list.empty() && list.front().code == Code::file_not_readable && !list.front().span.known();
    throw Error(unread ? ErrorKind::resource : ErrorKind::program, text, to_public(compilation.sources, compilation.diagnostics));
  }
  ProgramGraphs graphs{std::move(compilation), {}, {}, options.dims, options.roots, options.training_mode};
  const Compilation& c = graphs.compilation;
  if (options.training_mode && c.graph->loss.valid())
    throw Error(ErrorKind::usage, "CompileOptions::training_mode is of programs that minimize nothing: others have step()");
  PipelineOptions other = options;
  other.observe = nullptr;
  for (const Part part : parts) {
    EINC_CHECK(part != Part::accumulation, "micro-batches have a compilation of their own");
    if (part != Part::forward && !c.graph->loss.valid()) continue;
    other.roots = roots_of(part, options.roots, options.training_mode);
    graphs.parts[part] = part == Part::training ? *c.graph : run_passes(*c.elaborated, other);
  }
  return graphs;
}

void add_micro_batches(ProgramGraphs& graphs, Compilation gathered) {
  graphs.micro_batches = std::move(gathered);
  graphs.parts[Part::accumulation] = *graphs.micro_batches->graph;
}

Graph written_part(const ProgramGraphs& graphs, Part part) {
  const Compilation& of = part == Part::accumulation ? *graphs.micro_batches : graphs.compilation;
  return remove_dead(*of.elaborated, roots_of(part, graphs.roots, graphs.training_mode));
}

void check_dims(const Graph& graph, const Bindings& given) {
  const BindResult bound = graph.dims.bind(given);
  if (!bound.ok()) {
    const BindProblem& problem = bound.problems.front();
    throw Error(problem.kind == BindProblemKind::condition ? ErrorKind::data : ErrorKind::usage, problem.message);
  }
  if (bound.unset.empty()) return;
  std::string names;
  for (const Name name : bound.unset) names += (names.empty() ? "" : ", ") + name.str();
  throw Error(ErrorKind::usage, fmt::format("{} {} no value: set CompileOptions::dims", names, bound.unset.size() == 1 ? "has" : "have"));
}

ProgramInfo program_info(const ProgramGraphs& graphs) {
  const bool trains = graphs.parts[Part::training].has_value();
  return InfoBuilder(*graphs.parts[trains ? Part::training : Part::forward], graphs.dims).run(trains);
}

std::shared_ptr<const ProgramRep> native_program(const ProgramGraphs& graphs, const std::filesystem::path& cache_folder,
                                                 Scheduling scheduling, const EincTransport* transport) {
  if (graphs.compilation.graph->mesh.empty()) return whole_program(graphs, cache_folder, scheduling);
  return within<ProgramRep>(scheduling.memory_limit, mesh_program(graphs, cache_folder, scheduling, transport));
}

std::shared_ptr<const ProgramRep> whole_program(const ProgramGraphs& graphs, const std::filesystem::path& cache_folder,
                                                Scheduling scheduling) {
  const std::optional<MemoryLimit> limit = scheduling.memory_limit;  // of the whole session
  FileCache cache(cache_folder);
  std::vector<NativeCode> code;
  PerPart<NativePart> parts;
  for (size_t p = 0; p < kParts; ++p) {
    const Part part = static_cast<Part>(p);
    if (!graphs.parts[part]) continue;
    CpuOptions options;
    options.mode = run_mode(part);
    options.scheduling = scheduling;
    const auto lowered = lower_graph(*graphs.parts[part], graphs.dims, options);
    if (limit && part == Part::forward)  // held beside the step
      scheduling.memory_limit->taken += memory_of(lowered->lowered.program, Sources::bound, limit->threads);
    code.push_back(compile_native(lowered->lowered, cache));
    const std::optional<size_t> half = first_half(lowered->bound, lowered->list, lowered->roots);
    parts[part] = NativePart{std::move(lowered->lowered.program), code.back().functions, half};
  }
  return within<NativeProgram>(limit, std::make_shared<CompiledHere>(program_info(graphs), std::move(parts), std::move(code)));
}

std::shared_ptr<const ProgramRep> cuda_program(const ProgramGraphs& graphs, const std::filesystem::path& cache_folder,
                                               Scheduling scheduling, const EincTransport* transport) {
  if (graphs.compilation.graph->mesh.empty()) return whole_cuda_program(graphs, cache_folder, scheduling);
  return within<ProgramRep>(scheduling.memory_limit, cuda_mesh_program(graphs, cache_folder, scheduling, transport));
}

std::shared_ptr<const ProgramRep> whole_cuda_program(const ProgramGraphs& graphs, const std::filesystem::path& cache_folder,
                                                     Scheduling scheduling) {
  const std::optional<MemoryLimit> limit = scheduling.memory_limit;
  PerPart<CudaExecutable> parts;
  for (size_t p = 0; p < kParts; ++p) {
    const Part part = static_cast<Part>(p);
    if (!graphs.parts[part]) continue;
    CudaOptions options;
    options.gpu = cuda::Gpu::get().shape();
    options.mode = run_mode(part);
    options.attention = cuda::AttentionLibrary::get();
    options.scheduling = scheduling;
    parts[part] = std::move(compile_for_cuda(*graphs.parts[part], graphs.dims, options)->executable);
    if (limit && part == Part::forward) scheduling.memory_limit->taken += parts[part]->program.own_bytes;
  }
  FileCache cache(cache_folder);
  const auto threads = static_cast<int>(std::thread::hardware_concurrency());
  return within<CudaProgram>(limit, std::make_shared<CudaProgram>(program_info(graphs), std::move(parts), cache, threads));
}

std::vector<Error::Diagnostic> to_public(const SourceMap& sources, const Diagnostics& diagnostics) {
  std::vector<Error::Diagnostic> list;
  for (const Diagnostic& d : diagnostics.list()) {
    Error::Diagnostic result{
        d.severity == Severity::warning, std::string(info(d.code).code), d.message, place_of(sources, d.span), {}, d.hint};
    for (const Label& label : d.labels) result.labels.push_back({place_of(sources, label.span), label.text});
    list.push_back(std::move(result));
  }
  return list;
}

}  // namespace einc
