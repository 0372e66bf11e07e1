// SPDX-License-Identifier: Apache-2.0
// A log is read line by line. Each run of it tells the step that it goes on from: what an earlier run did behind that is dropped, and x
// goes on where the kept part ends.
#include "compiler/driver/run_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "compiler/driver/log_lines.h"
#include "runtime/base/failure.h"
#include "runtime/base/printable.h"

namespace einc {
namespace {

std::optional<double> number(const nlohmann::json& line, const char* field) {
  const auto found = line.find(field);
  if (found == line.end() || !found->is_number() || !std::isfinite(found->get<double>())) return std::nullopt;
  return found->get<double>();
}

class CurveReader {
 public:
  CurveReader(const std::string& path, PlotAxis axis) : path_(path), axis_(axis) {
    run_.name = std::filesystem::path(path).stem().string();
  }

  RunCurves read() {
    read_log(path_, [&](const LogLine& line) {
      if (line.fields.at("kind") == "run")
        begin(line.fields);
      else
        take(line.fields);
      return true;
    });
    if (run_.loss.empty() && run_.validation.empty()) fail("it holds no step and no evaluation");
    return std::move(run_);
  }

 private:
  // Where a run went on from, what an earlier one did afterwards counts no more; its time and tokens up to there do.
  void begin(const nlohmann::json& line) {
    const double first_step = number(line, "first_step").value_or(0);
    for (Curve* curve : {&run_.loss, &run_.validation, &run_.rate, &run_.throughput})
      curve->erase(curve->upper_bound(first_step), curve->end());
    if (axis_ == PlotAxis::time) base_ = std::max(last_of(run_.loss), last_of(run_.validation));
    if (axis_ == PlotAxis::tokens) {
      const double tokens = number(line, "tokens_per_step").value_or(0);
      base_ = tokens_per_step_ > 0 ? tokens_at(first_step) : first_step * tokens;
      tokens_per_step_ = tokens;
    }
    first_step_ = first_step;
  }
  double tokens_at(double step) const { return base_ + (step - first_step_) * tokens_per_step_; }
  static double last_of(const Curve& curve) { return curve.empty() ? 0 : curve.rbegin()->second.x; }

  void take(const nlohmann::json& line) {
    const auto step = number(line, "step");
    if (!step) return;
    run_.of_examples |= line.contains("examples_per_second");
    const std::pair<Curve*, const char*> fields[] = {{&run_.loss, "loss"},
                                                     {&run_.validation, "validation_loss"},
                                                     {&run_.rate, "learning_rate"},
                                                     {&run_.throughput, run_.of_examples ? "examples_per_second" : "tokens_per_second"}};
    for (const auto& [curve, field] : fields)
      if (const auto y = number(line, field)) (*curve)[*step] = {x_of(*step, line), *y};
  }

  double x_of(double step, const nlohmann::json& line) const {
    if (axis_ == PlotAxis::step) return step;
    if (axis_ == PlotAxis::tokens) {
      // Where the loss is no mean over tokens, its positions are counted all the same.
      if (run_.of_examples || tokens_per_step_ <= 0) fail("its steps are of examples, not tokens; draw it over --x=step or --x=time");
      return tokens_at(step);
    }
    const auto elapsed = number(line, "elapsed");
    if (!elapsed) fail(fmt::format("what it says of step {:.0f} has no time (`elapsed`); draw it over --x=step", step));
    return base_ + *elapsed;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw RuntimeFailure(FailureKind::data, fmt::format("{}: {}", printable(path_), what));
  }

  const std::string& path_;
  PlotAxis axis_;
  RunCurves run_;
  double first_step_ = 0, tokens_per_step_ = 0;  // of the run that is read
  double base_ = 0;                              // x where it begins
};

}  // namespace

RunCurves read_curves(const std::string& path, PlotAxis axis) { return CurveReader(path, axis).read(); }

Curve running_mean(const Curve& curve, size_t count) {
  Curve result;
  std::vector<long double> sums{0};  // of the values before each
  for (const auto& [step, point] : curve) {
    sums.push_back(sums.back() + point.y);
    const size_t end = sums.size() - 1, begin = end - std::min(count, end);
    result[step] = {point.x, static_cast<double>((sums[end] - sums[begin]) / static_cast<long double>(end - begin))};
  }
  return result;
}

}  // namespace einc
