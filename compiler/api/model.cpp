#include <einc/einc.h>
#include <fmt/format.h>

#include <mutex>
#include <thread>

#include "compiler/api/compile_program.h"
#include "compiler/codegen/llvm/native_code.h"
#include "compiler/report/hold_formulas.h"
#include "runtime/api/guard.h"
#include "runtime/base/big_stack.h"

namespace einc {

struct Model::Details {
  std::shared_ptr<const ProgramGraphs> graphs;
  PipelineOptions pipeline;
  std::vector<Error::Diagnostic> warnings;
  mutable std::once_flag reported;
  mutable cost::Report report;

  // Compiles what `open` gives. Deep programs need more stack than the caller may have.
  static Model compile(const std::function<Compilation(const PipelineOptions&)>& open, const CompileOptions& options);
};

namespace {

using Open = std::function<Compilation(const PipelineOptions&)>;

Open from_file(const std::string& path) {
  return [&path](const PipelineOptions& options) { return compile_file(path, options); };
}

Open from_text(std::string_view text, const std::string& name) {
  return [=](const PipelineOptions& options) { return compile_text(name, std::string(text), options); };
}

template <class Function>
auto on_big_stack(Function&& function) {
  return guarded([&] {
    std::optional<decltype(function())> result;
    run_on_big_stack([&] { result.emplace(function()); });
    return std::move(*result);
  });
}

ProgramGraphs compile_graphs(const Open& open, const CompileOptions& options) {
  const PipelineOptions pipeline = pipeline_options(options);
  return make_graphs(open(pipeline), pipeline, parts_for(options.purpose));
}

cost::Report make_report(const ProgramGraphs& graphs, const PipelineOptions& pipeline) {
  ReportOptions options;
  options.given = graphs.dims;
  options.detail = Detail::ops;
  options.inference = &*graphs.parts[Part::forward];
  options.plan = plan_for_processor(native_processor());
  const Graph& graph = *graphs.compilation.graph;
  Report report = build_report(graph, options);
  hold_formulas(report, graph, graphs.dims, [&](const Bindings& dims) { return compile_again(graphs.compilation, pipeline, dims).graph; });
  return to_public(report, graph);
}

}  // namespace

Model Model::Details::compile(const Open& open, const CompileOptions& options) {
  return on_big_stack([&] {
    auto graphs = std::make_shared<ProgramGraphs>(compile_graphs(open, options));
    check_dims(*graphs->parts[Part::forward], graphs->dims);
    auto details = std::make_shared<Details>();
    details->graphs = graphs;
    details->pipeline = pipeline_options(options);
    details->warnings = to_public(graphs->compilation.sources, graphs->compilation.diagnostics);
    const std::filesystem::path cache = options.code_cache ? *options.code_cache : FileCache::default_folder();
    Scheduling scheduling;
    if (options.memory_limit) {
      if (*options.memory_limit <= 0) throw Error(ErrorKind::usage, "CompileOptions::memory_limit is no positive number of bytes");
      scheduling.memory_limit = {*options.memory_limit, 0, static_cast<int>(std::thread::hardware_concurrency())};
    }
    auto program = options.target == Target::reference ? reference_program(*graphs)
                   : options.target == Target::cuda    ? cuda_program(*graphs, cache, scheduling)
                                                       : native_program(*graphs, cache, scheduling);
    return Model(std::move(program), std::move(details));
  });
}

Model::Model(std::shared_ptr<const ProgramRep> program, std::shared_ptr<const Details> details)
    : Program(std::move(program)), details_(std::move(details)) {}

const Model::Details& Model::details() const {
  if (!details_) throw Error(ErrorKind::usage, "the model was moved from");
  return *details_;
}

const std::vector<Error::Diagnostic>& Model::warnings() const { return details().warnings; }

const cost::Report& Model::report() const {
  const Details& d = details();
  std::call_once(d.reported, [&] { d.report = on_big_stack([&] { return make_report(*d.graphs, d.pipeline); }); });
  return d.report;
}

Model compile_file(const std::string& path, const CompileOptions& options) { return Model::Details::compile(from_file(path), options); }

Model compile_text(std::string_view text, const CompileOptions& options, const std::string& name) {
  return Model::Details::compile(from_text(text, name), options);
}

cost::Report report_file(const std::string& path, const CompileOptions& options) {
  return on_big_stack([&] { return make_report(compile_graphs(from_file(path), options), pipeline_options(options)); });
}

cost::Report report_text(std::string_view text, const CompileOptions& options, const std::string& name) {
  return on_big_stack([&] { return make_report(compile_graphs(from_text(text, name), options), pipeline_options(options)); });
}

}  // namespace einc
