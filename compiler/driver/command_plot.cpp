// SPDX-License-Identifier: Apache-2.0
// `einc plot run.jsonl`: loss, validation loss, learning rate and throughput of one or several runs over their steps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "compiler/driver/check_outputs.h"
#include "compiler/driver/command_line.h"
#include "compiler/driver/log_lines.h"
#include "compiler/driver/plot.h"
#include "runtime/base/failure.h"
#include "runtime/base/printable.h"
#include "runtime/data/file.h"

namespace einc {
namespace {

constexpr size_t kMaxRuns = 32;

// By step: a log of several runs has some steps twice, and the later one counts.
using Curve = std::map<double, double>;

struct RunCurves {
  std::string name;
  Curve loss, validation, rate, throughput;
  bool of_examples = false;  // throughput in examples, not tokens
};

void take(Curve& curve, const nlohmann::json& line, const char* field) {
  const auto step = line.find("step"), value = line.find(field);
  if (step == line.end() || value == line.end() || !step->is_number() || !value->is_number()) return;
  const double y = value->get<double>();
  if (std::isfinite(y)) curve[step->get<double>()] = y;
}

RunCurves read_run(const std::string& path) {
  RunCurves run;
  run.name = std::filesystem::path(path).stem().string();
  read_log(path, [&](const LogLine& line) {
    take(run.loss, line.fields, "loss");
    take(run.validation, line.fields, "validation_loss");
    take(run.rate, line.fields, "learning_rate");
    run.of_examples |= line.fields.contains("examples_per_second");
    take(run.throughput, line.fields, run.of_examples ? "examples_per_second" : "tokens_per_second");
    return true;
  });
  if (run.loss.empty() && run.validation.empty())
    throw RuntimeFailure(FailureKind::data, fmt::format("{}: it holds no step and no evaluation", printable(path)));
  return run;
}

PlotLine line_of(const Curve& curve, size_t color, LineStyle style) { return {{curve.begin(), curve.end()}, color, style}; }

Plot plot_of(const std::vector<RunCurves>& runs) {
  Plot plot;
  plot.x_label = "step";
  PlotPanel loss{"loss", 340, {}}, rate{"learning rate", 130, {}}, tokens{"tokens/s", 130, {}}, examples{"examples/s", 130, {}};
  loss.may_be_logarithmic = true;
  bool validated = false;
  for (size_t r = 0; r < runs.size(); ++r) {
    const RunCurves& run = runs[r];
    std::string text = run.name;
    if (!run.loss.empty()) text += fmt::format(": loss {:.4f}", run.loss.rbegin()->second);
    if (!run.validation.empty()) {
      const auto best =
          std::min_element(run.validation.begin(), run.validation.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      text += fmt::format("{} best validation loss {:.4f} at step {:.0f}", run.loss.empty() ? ":" : ",", best->second, best->first);
      validated = true;
    }
    plot.keys.push_back({text, r});
    if (!run.loss.empty()) loss.lines.push_back(line_of(run.loss, r, LineStyle::thin));
    if (!run.rate.empty()) rate.lines.push_back(line_of(run.rate, r, LineStyle::thin));
    if (!run.throughput.empty()) (run.of_examples ? examples : tokens).lines.push_back(line_of(run.throughput, r, LineStyle::thin));
  }
  for (size_t r = 0; r < runs.size(); ++r)
    if (!runs[r].validation.empty()) loss.lines.push_back(line_of(runs[r].validation, r, LineStyle::dotted));
  if (validated) plot.notes.push_back("thin lines: training loss; thick lines with dots: validation loss");
  plot.panels.push_back(std::move(loss));
  if (!rate.lines.empty()) plot.panels.push_back(std::move(rate));
  if (!tokens.lines.empty()) plot.panels.push_back(std::move(tokens));
  if (!examples.lines.empty()) plot.panels.push_back(std::move(examples));
  return plot;
}

}  // namespace

ExitStatus plot_command(Arguments arguments) {
  CLI::App app("Draws what `einc train --log` wrote: loss, validation loss, learning rate, throughput.", "einc plot");
  std::vector<std::string> logs;
  std::string output;
  app.add_option("LOG", logs, "logs of runs, each in a color of its own")->required();
  app.add_option("-o", output, "the drawing: an .svg or .html file")->required()->type_name("FILE");
  if (auto status = parse_arguments(app, arguments)) return *status;
  const std::string ending = std::filesystem::path(output).extension().string();
  if (ending != ".svg" && ending != ".html")
    return fmt::print(stderr, "einc: -o {}: a drawing ends in .svg or .html\n", printable(output)), ExitStatus::wrong_usage;
  if (logs.size() > kMaxRuns)
    return fmt::print(stderr, "einc: {} logs; {} at most fit one drawing\n", logs.size(), kMaxRuns), ExitStatus::wrong_usage;
  NamedFiles inputs;
  for (const std::string& log : logs) inputs.emplace_back("the log", log);
  if (!check_outputs({{"-o", output}}, inputs)) return ExitStatus::wrong_usage;
  std::vector<RunCurves> runs;
  for (const std::string& log : logs) runs.push_back(read_run(log));
  std::string text = plot_svg(plot_of(runs));
  if (ending == ".html")
    text =
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>einc plot</title></head>\n<body "
        "style=\"background:#fff;margin:1em\">\n" +
        text + "</body></html>\n";
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(text))};
  write_file(output, pieces);
  return ExitStatus::done;
}

}  // namespace einc
