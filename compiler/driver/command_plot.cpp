// SPDX-License-Identifier: Apache-2.0
// `einc plot run.jsonl`: loss, validation loss, learning rate and throughput of one or several runs over steps, time or tokens.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "compiler/driver/check_outputs.h"
#include "compiler/driver/command_line.h"
#include "compiler/driver/plot.h"
#include "compiler/driver/run_curves.h"
#include "compiler/driver/svg_to_png.h"
#include "runtime/base/failure.h"
#include "runtime/base/printable.h"
#include "runtime/data/file.h"

namespace einc {
namespace {

constexpr size_t kMaxRuns = 32;

constexpr uint64_t kMostSmoothed = 1'000'000;  // values of a log

struct PlotChoices {
  PlotAxis x = PlotAxis::step;
  YAxis loss = YAxis::logarithmic_where_wide;
  size_t smooth = 1;  // logged values in a mean
};

// Over time, in the unit that the longest of the runs takes.
struct AxisUnit {
  const char* label;
  double size;
};

AxisUnit unit_of(PlotAxis axis, const std::vector<RunCurves>& runs) {
  if (axis != PlotAxis::time) return {axis == PlotAxis::step ? "step" : "tokens", 1};
  double longest = 0;
  for (const RunCurves& run : runs)
    for (const Curve* curve : {&run.loss, &run.validation})
      if (!curve->empty()) longest = std::max(longest, curve->rbegin()->second.x);
  if (longest >= 2 * 86400) return {"days of training", 86400};
  if (longest >= 2 * 3600) return {"hours of training", 3600};
  return longest >= 120 ? AxisUnit{"minutes of training", 60} : AxisUnit{"seconds of training", 1};
}

// A logarithmic axis has no place for zero and below.
void check_positive(const RunCurves& run) {
  for (const Curve* curve : {&run.loss, &run.validation})
    for (const auto& [step, point] : *curve)
      if (point.y <= 0)
        throw RuntimeFailure(FailureKind::data, fmt::format("--log: the loss of {} at step {:.0f} is {:g}; its logarithm is not finite",
                                                            printable(run.name), step, point.y));
}

std::string key_text(const RunCurves& run) {
  std::string text = run.name;
  if (!run.loss.empty()) text += fmt::format(": loss {:.4f}", run.loss.rbegin()->second.y);
  if (run.validation.empty()) return text;
  const auto best =
      std::min_element(run.validation.begin(), run.validation.end(), [](const auto& a, const auto& b) { return a.second.y < b.second.y; });
  const char* between = run.loss.empty() ? ":" : ",";
  return text + fmt::format("{} best validation loss {:.4f} at step {:.0f}", between, best->second.y, best->first);
}

Plot plot_of(const std::vector<RunCurves>& runs, const PlotChoices& choices) {
  const AxisUnit unit = unit_of(choices.x, runs);
  const auto line_of = [&](const Curve& curve, size_t color, LineStyle style) {
    PlotLine line{{}, color, style};
    for (const auto& [step, point] : curve) line.points.emplace_back(point.x / unit.size, point.y);
    return line;
  };
  Plot plot;
  plot.x_label = unit.label;
  PlotPanel loss{"loss", 340, {}}, rate{"learning rate", 130, {}}, tokens{"tokens/s", 130, {}}, examples{"examples/s", 130, {}};
  loss.y_axis = choices.loss;
  const bool smoothed = choices.smooth > 1;
  bool validated = false;
  for (size_t r = 0; r < runs.size(); ++r) {
    const RunCurves& run = runs[r];
    validated |= !run.validation.empty();
    plot.keys.push_back({key_text(run), r});
    if (!run.loss.empty()) loss.lines.push_back(line_of(run.loss, r, smoothed ? LineStyle::faint : LineStyle::thin));
    if (!run.rate.empty()) rate.lines.push_back(line_of(run.rate, r, LineStyle::thin));
    if (!run.throughput.empty()) (run.of_examples ? examples : tokens).lines.push_back(line_of(run.throughput, r, LineStyle::thin));
  }
  for (size_t r = 0; smoothed && r < runs.size(); ++r)
    if (!runs[r].loss.empty()) loss.lines.push_back(line_of(running_mean(runs[r].loss, choices.smooth), r, LineStyle::thin));
  for (size_t r = 0; r < runs.size(); ++r)
    if (!runs[r].validation.empty()) loss.lines.push_back(line_of(runs[r].validation, r, LineStyle::dotted));
  if (smoothed) plot.notes.push_back(fmt::format("training loss: means of the last {} values of the log, these faint", choices.smooth));
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
  app.add_option("-o", output, "the drawing: an .svg, .html or .png file (.png by rsvg-convert)")->required()->type_name("FILE");
  PlotChoices choices;
  std::string x = "step";
  bool logarithmic = false;
  app.add_option("--x", x, "the horizontal axis: step (the default), time or tokens")->check(one_of({"step", "time", "tokens"}));
  app.add_flag("--log", logarithmic, "draw the loss on a logarithmic axis, even where it spans less than two decades");
  app.add_option("--smooth", choices.smooth,
                 "draw the training loss as a running mean of the last K logged values, with these faint behind it")
      ->transform(count_between(1, kMostSmoothed))
      ->type_name("K");
  if (auto status = parse_arguments(app, arguments)) return *status;
  choices.x = x == "step" ? PlotAxis::step : x == "time" ? PlotAxis::time : PlotAxis::tokens;
  if (logarithmic) choices.loss = YAxis::logarithmic;
  const std::string ending = std::filesystem::path(output).extension().string();
  if (ending == ".png" && !has_svg_converter())
    return fmt::print(stderr,
                      "einc: -o {}: for a PNG install rsvg-convert (Debian's librsvg2-bin); or draw an .svg file and convert it, as by "
                      "inkscape loss.svg -o loss.png\n",
                      printable(output)),
           ExitStatus::wrong_usage;
  if (ending != ".svg" && ending != ".html" && ending != ".png")
    return fmt::print(stderr, "einc: -o {}: a drawing ends in .svg, .html or .png\n", printable(output)), ExitStatus::wrong_usage;
  if (logs.size() > kMaxRuns)
    return fmt::print(stderr, "einc: {} logs; {} at most fit one drawing\n", logs.size(), kMaxRuns), ExitStatus::wrong_usage;
  NamedFiles inputs;
  for (const std::string& log : logs) inputs.emplace_back("the log", log);
  if (!check_outputs({{"-o", output}}, inputs)) return ExitStatus::wrong_usage;
  std::vector<RunCurves> runs;
  for (const std::string& log : logs) runs.push_back(read_curves(log, choices.x));
  if (choices.loss == YAxis::logarithmic) std::for_each(runs.begin(), runs.end(), check_positive);
  std::string text = plot_svg(plot_of(runs, choices));
  if (ending == ".html")
    text =
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>einc plot</title></head>\n<body "
        "style=\"background:#fff;margin:1em\">\n" +
        text + "</body></html>\n";
  if (ending == ".png") text = svg_to_png(text);
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(text))};
  write_file(output, pieces);
  return ExitStatus::done;
}

}  // namespace einc
