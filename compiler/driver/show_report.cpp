// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/show_report.h"

#include <fmt/format.h>

#include <span>

#include "compiler/api/mesh_process.h"
#include "compiler/api/render_report.h"
#include "compiler/driver/open_program.h"
#include "compiler/report/diff.h"
#include "compiler/report/document.h"
#include "compiler/report/json.h"
#include "runtime/base/failure.h"
#include "runtime/data/file.h"

namespace einc {
namespace {

// Whether the graph's structure (an unrolled loop, the branch of an `if`) depends on a dim, so that another value needs another graph.
bool shapes_graph(const Graph& graph, Name dim) {
  for (const Loop& loop : graph.loops)
    if (loop.trip_count.contains(dim)) return true;
  return std::ranges::find(graph.chosen_by, dim) != graph.chosen_by.end();
}

FitReport fit_dim(const CompileRequest& request, const Compilation& c, const PipelineOptions& options, const Device& device) {
  const Graph& graph = *c.graph;
  const Name dim(request.fit);
  const bool recompile = shapes_graph(graph, dim);
  Scheduling scheduling = request.scheduling();
  if (scheduling.memory_limit) scheduling.memory_limit->goal = MemoryGoal::any_choice;
  const PlanStep plan = plan_for_device(scheduling, device, request.threads);
  const Rational memory(static_cast<int64_t>(device.usable_bytes())), too_much = memory + Rational(1);
  auto bytes = [&](int64_t value) -> std::optional<Rational> {
    Bindings dims = options.dims;
    dims[dim] = value;
    try {
      if (!recompile) return peak_training_bytes(graph, dims, plan);
      const Compilation other = compile_again(c, options, dims);
      return other.graph ? peak_training_bytes(*other.graph, dims, plan) : std::nullopt;
    } catch (const RuntimeFailure& failure) {  // no choice of what to make again keeps this step within --memory-limit
      if (failure.kind() != FailureKind::resource || !request.memory_limit) throw;
      return too_much;
    }
  };
  const int64_t limit = recompile ? 4096 : int64_t{1} << 40;
  return {dim, largest_fitting(bytes, memory, limit)};
}

std::string rendered(const std::string& form, const Report& report, const Compilation& c, TextStyle style) {
  if (form == "csv") return render_csv(report, *c.graph);
  if (form == "md") return report_document(report, style.width).markdown();
  return render_report(form == "json" ? ReportForm::json : form == "html" ? ReportForm::html : ReportForm::text, report, c, style);
}

}  // namespace

std::optional<Report> make_report(const CompileRequest& request, const Compilation& c, const PipelineOptions& options,
                                  const std::optional<Device>& device, Detail detail, const Partitioned* partitioned) {
  ReportOptions report_options;
  report_options.given = options.dims;
  report_options.detail = detail;
  report_options.device = device;
  report_options.partitioned = partitioned;
  if (request.devices || request.tokens || request.mfu) {
    if (!device || !request.tokens) {
      fmt::print(stderr, "einc: a training time needs --tokens and --device (and may have --devices and --mfu)\n");
      return std::nullopt;
    }
    report_options.training = TrainingRequest{request.devices.value_or(1), *request.tokens, request.mfu.value_or(0.5)};
  }
  PipelineOptions inference_options = options;
  inference_options.roots = Roots::inference;
  inference_options.observe = nullptr;
  std::optional<Graph> inference;
  report_options.inference = [&]() -> const Graph& { return inference.emplace(run_passes(*c.elaborated, inference_options)); };
  Scheduling scheduling = request.scheduling();
  if (!request.fit.empty()) scheduling.memory_limit.reset();  // of what --fit looks for, not of the dims as they are
  if (partitioned) {                                          // the limit is of a device
    report_options.plan_device = plan_for_device(scheduling, device, request.threads);
    report_options.process_bytes = process_bytes_of(*c.graph, options.dims, device ? device->target : DeviceTarget::cpu);
    scheduling.memory_limit.reset();
  }
  report_options.plan = plan_for_device(scheduling, device, request.threads);
  scheduling.observe = nullptr;
  report_options.plan_inference = plan_for_device(scheduling, device, request.threads);
  if (!request.report.empty()) report_options.compile = [&](const Bindings& dims) { return compile_again(c, options, dims).graph; };
  Report report = build_report(*c.graph, report_options);
  if (!request.fit.empty()) report.fit = fit_dim(request, c, options, *device);
  return report;
}

void write_report(const CompileRequest& request, const Report& report, const Compilation& c, TextStyle style) {
  const std::string& path = request.object.path;
  const std::string text = rendered(request.report, report, c, path.empty() ? style : TextStyle{});  // a file is no terminal
  if (path.empty()) return fmt::print("{}", text);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  write_file(path, std::span(&bytes, 1));
}

ExitStatus show_difference(const CompileRequest& request, const Compilation& c, const PipelineOptions& options,
                           const std::optional<Device>& device, TextStyle style) {
  const std::string& file = request.other.empty() ? request.file : request.other;
  if (const std::optional<std::string> problem = unreadable(file))
    return fmt::print(stderr, "einc: {}\n", *problem), ExitStatus::environment;
  PipelineOptions other_options = options;
  other_options.observe = nullptr;
  other_options.dims = request.other_dims;
  const Compilation other = compile_file(file, other_options);
  print_diagnostics(other.sources, other.diagnostics, DiagnosticsForm::text, request.quiet ? Severity::error : Severity::warning);
  if (!other.graph) return ExitStatus::wrong_program;
  const auto report = make_report(request, c, options, device, Detail::totals, nullptr);
  const auto others = make_report(request, other, other_options, device, Detail::totals, nullptr);
  if (!report || !others) return ExitStatus::wrong_usage;
  fmt::print("{}", compare_reports(*report, *c.graph, *others, *other.graph).text(style));
  return ExitStatus::done;
}

}  // namespace einc
