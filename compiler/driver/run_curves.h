// SPDX-License-Identifier: Apache-2.0
// What the log of a run holds for a drawing: values by step, and where each step lies on the axis that was asked for.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace einc {

enum class PlotAxis : uint8_t { step, time, tokens };

struct CurvePoint {
  double x = 0, y = 0;  // x: the step, seconds of training, or tokens
};

// By step: a log of several runs may have a step twice, and the later run counts.
using Curve = std::map<double, CurvePoint>;

struct RunCurves {
  std::string name;
  Curve loss, validation, rate, throughput;
  bool of_examples = false;  // throughput in examples, not tokens
};

// Throws RuntimeFailure: resource, or data where the log is none, holds nothing to draw, or lacks what the axis needs.
RunCurves read_curves(const std::string& path, PlotAxis axis);

// Each point the mean of itself and the points before it, `count` in all, or as many as there are.
Curve running_mean(const Curve& curve, size_t count);

}  // namespace einc
