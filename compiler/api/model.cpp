// SPDX-License-Identifier: Apache-2.0
#include <einc/einc.h>
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <mutex>
#include <thread>

#include "compiler/api/compile_program.h"
#include "compiler/api/render_report.h"
#include "compiler/context/partition_for_mesh.h"
#include "compiler/partition/partition.h"
#include "runtime/api/guard.h"
#include "runtime/base/big_stack.h"
#include "runtime/base/file_cache.h"
#include "runtime/base/printable.h"

namespace einc {

struct Model::Details {
  std::shared_ptr<const ProgramGraphs> graphs;
  PipelineOptions pipeline;
  std::vector<Error::Diagnostic> warnings;
  std::string report_device;
  mutable std::once_flag reported;
  mutable std::optional<Report> internal_report;  // what it is rendered from
  mutable cost::Report report;

  void make_reports() const;  // once

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

// Iterations of scans included.
bool has_op(const Graph& graph, std::initializer_list<Op> ops) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return std::ranges::find(ops, node.op) != ops.end() || (node.op == Op::scan && has_op(*node.as<ScanAttr>().body, ops));
  });
}

ProgramGraphs compile_graphs(const Open& open, const CompileOptions& options) {
  const PipelineOptions pipeline = pipeline_options(options);
  return make_graphs(open(pipeline), pipeline, parts_for(options.purpose));
}

std::optional<Device> device_named(const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (const Device* device = find_device(name)) return *device;
  throw Error(ErrorKind::usage, fmt::format("no device `{}`: `einc --list-devices` names them", printable(name)));
}

Report make_report(const ProgramGraphs& graphs, const PipelineOptions& pipeline, const std::string& device) {
  ReportOptions options;
  options.device = device_named(device);
  options.given = graphs.dims;
  options.detail = Detail::ops;
  options.inference = [&]() -> const Graph& { return *graphs.parts[Part::forward]; };
  options.plan = plan_for_device(Scheduling::all, options.device);
  const Graph& graph = *graphs.compilation.graph;
  std::variant<Partitioned, NoPartition> over_mesh;
  if (!graph.mesh.empty()) over_mesh = partition_for_mesh(graph, graphs.dims);
  if (!graph.mesh.empty()) options.partitioned = std::get_if<Partitioned>(&over_mesh);
  options.compile = [&](const Bindings& dims) { return compile_again(graphs.compilation, pipeline, dims).graph; };
  Report report = build_report(graph, options);
  if (!graph.mesh.empty() && !options.partitioned)
    report.notes.push_back(
        fmt::format("no communication: {} has no rule for parts", to_string(graph[std::get<NoPartition>(over_mesh).node].op)));
  return report;
}

template <class Use>
auto with_report(const Open& open, const CompileOptions& options, Use&& use) {
  return on_big_stack([&] {
    const ProgramGraphs graphs = compile_graphs(open, options);
    return use(make_report(graphs, pipeline_options(options), options.report_device), graphs.compilation);
  });
}

cost::Report public_report(const Open& open, const CompileOptions& options) {
  return with_report(open, options, [](const Report& report, const Compilation& c) { return to_public(report, *c.graph); });
}

std::string rendered_report(const Open& open, ReportForm form, const CompileOptions& options) {
  return with_report(open, options, [&](const Report& report, const Compilation& c) { return render_report(form, report, c); });
}

}  // namespace

Model Model::Details::compile(const Open& open, const CompileOptions& options) {
  return on_big_stack([&] {
    auto graphs = std::make_shared<ProgramGraphs>(compile_graphs(open, options));
    device_named(options.report_device);
    check_dims(*graphs->parts[Part::forward], graphs->dims);
    auto details = std::make_shared<Details>();
    details->graphs = graphs;
    details->pipeline = pipeline_options(options);
    details->report_device = options.report_device;
    details->warnings = to_public(graphs->compilation.sources, graphs->compilation.diagnostics);
    const std::filesystem::path cache = options.code_cache ? *options.code_cache : FileCache::default_folder();
    Scheduling scheduling;
    if (options.memory_limit) {
      if (*options.memory_limit <= 0) throw Error(ErrorKind::usage, "CompileOptions::memory_limit is not a positive number of bytes");
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

bool Model::has_modes() const { return has_op(*details().graphs->compilation.elaborated, {Op::dropout, Op::training}); }
bool Model::draws() const { return has_op(*details().graphs->compilation.elaborated, {Op::dropout, Op::random}); }

const std::vector<Error::Diagnostic>& Model::warnings() const { return details().warnings; }

void Model::Details::make_reports() const {
  std::call_once(reported, [&] {
    on_big_stack([&] {
      internal_report = make_report(*graphs, pipeline, report_device);
      report = to_public(*internal_report, *graphs->compilation.graph);
      return true;
    });
  });
}

const cost::Report& Model::report() const {
  details().make_reports();
  return details().report;
}

std::string Model::render_report(ReportForm form) const {
  const Details& d = details();
  d.make_reports();
  return on_big_stack([&] { return einc::render_report(form, *d.internal_report, d.graphs->compilation); });
}

Model compile_file(const std::string& path, const CompileOptions& options) { return Model::Details::compile(from_file(path), options); }

Model compile_text(std::string_view text, const CompileOptions& options, const std::string& name) {
  return Model::Details::compile(from_text(text, name), options);
}

cost::Report report_file(const std::string& path, const CompileOptions& options) { return public_report(from_file(path), options); }

cost::Report report_text(std::string_view text, const CompileOptions& options, const std::string& name) {
  return public_report(from_text(text, name), options);
}

std::string render_report_of_file(const std::string& path, ReportForm form, const CompileOptions& options) {
  return rendered_report(from_file(path), form, options);
}

std::string render_report_of_text(std::string_view text, ReportForm form, const CompileOptions& options, const std::string& name) {
  return rendered_report(from_text(text, name), form, options);
}

}  // namespace einc
