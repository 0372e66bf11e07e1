// SPDX-License-Identifier: Apache-2.0
// `einc gradcheck FILE`: every gradient of the minimized loss against finite differences, at sizes small enough to run.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "compiler/autodiff/gradient_check.h"
#include "compiler/cost/totals.h"
#include "compiler/driver/command_line.h"
#include "compiler/driver/open_program.h"
#include "compiler/driver/progress.h"
#include "compiler/ir/interpret.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/simplify/expand.h"

namespace einc {
namespace {

void print_errors(const std::vector<GradientError>& errors, double tolerance) {
  size_t width = 5;
  for (const GradientError& e : errors) width = std::max(width, e.path.str().size());
  fmt::print("{:<{}}  {:>10}  {:>24}  {:>24}  {:>8}  {:>7}\n", "param", width, "error", "symbolic", "finite difference", "compared",
             "skipped");
  for (const GradientError& e : errors)
    fmt::print("{:<{}}  {:>10.2e}  {:>24.16e}  {:>24.16e}  {:>8}  {:>7}{}\n", e.path.str(), width, e.error, e.symbolic, e.numeric,
               e.compared, e.skipped, e.error <= tolerance ? "" : "  WRONG");
}

// Of a check without --max-elements: about ten seconds of the interpreter. Counted, not timed: each run checks the same elements.
constexpr double kUsualFlops = 8e9;

int64_t usual_elements(const Graph& graph, const Bindings& dims) {
  const Poly forward = count_flops(graph, constant_nodes(graph)).total(Phase::forward);
  const double flops = std::max(1.0, forward.evaluate(graph.dims.bind(dims).values)->to_double());
  return std::max<int64_t>(1, static_cast<int64_t>(std::min(kUsualFlops / (kLossesPerElement * flops), 1e12)));
}

}  // namespace

ExitStatus gradcheck_command(Arguments arguments) {
  CLI::App app(
      "Compares symbolic gradients with finite differences in f64. The loss is computed six times per element: without --max-elements, "
      "only "
      "as many are checked as a few seconds allow, which is more with small dims (-D).",
      "einc gradcheck");
  std::string file;
  std::vector<std::string> settings, import_folders;
  GradientCheckOptions options;
  double tolerance = 1e-6;
  app.add_option("FILE", file, "the program")->required();
  app.add_option("-D", settings, "set a dim: name=value")->allow_extra_args(false)->type_name("NAME=VALUE");
  add_import_folders(app, import_folders);
  app.add_option("--seed", options.seed, "seed of params, inputs and the choice of elements")->check(seed_check());
  app.add_option("--elements", options.elements,
                 fmt::format("check at most this many elements of each param, {} by default", options.elements))
      ->transform(count_between(1, kMaxCount));
  auto* most =
      app.add_option("--max-elements", options.max_elements, "check at most this many elements in all, but at least one of each param")
          ->transform(count_between(1, kMaxCount));
  app.add_option("--tolerance", tolerance, fmt::format("largest relative error allowed, {} by default", tolerance))
      ->check(positive_number());
  if (auto status = parse_arguments(app, arguments)) return *status;
  const std::optional<Bindings> dims = parse_dim_settings(settings);
  if (!dims) return ExitStatus::wrong_usage;
  const auto opened = open_program(file, program_options(*dims, Roots::training, "", import_folders));
  if (const auto* status = std::get_if<ExitStatus>(&opened)) return *status;
  const auto& c = std::get<Compilation>(opened);
  if (!dims_are_set(*c.graph, *dims)) return ExitStatus::wrong_usage;
  if (!c.graph->loss.valid() || c.graph->gradients.empty()) {
    fmt::print(stderr, "einc: {} minimizes no loss, so there is no gradient to check\n", printable(file));
    return ExitStatus::wrong_program;
  }
  if (most->empty()) options.max_elements = usual_elements(*c.graph, *dims);
  std::optional<Progress> progress;
  progress.emplace("gradcheck");
  options.progress = [&](int64_t done, int64_t all, Name param) {
    progress->show(fmt::format("{}, element", printable(param.str())), done, all);
  };
  const Graph written = expand(*c.elaborated, Roots::inference);  // before any other pass; without dropout, `training` is false
  const std::vector<GradientError> errors =
      check_gradients(written, *dims, random_inputs(written, *dims, options.seed), initial_params(written, *dims, options.seed),
                      initial_states(written, *dims, options.seed), options);
  progress.reset();
  print_errors(errors, tolerance);
  int64_t checked = 0, elements = 0;
  for (const GradientError& e : errors) checked += e.compared + e.skipped, elements += e.elements;
  if (checked < elements)
    fmt::print("{} of {} elements, drawn with --seed {}; --max-elements and --elements check more\n", checked, elements, options.seed);
  const bool right = std::all_of(errors.begin(), errors.end(), [&](const GradientError& e) { return e.error <= tolerance; });
  fmt::print("{}\n", right ? "all gradients agree" : "some gradients do not agree");
  return right ? ExitStatus::done : ExitStatus::wrong_program;
}

}  // namespace einc
