// SPDX-License-Identifier: Apache-2.0
// Line charts as SVG: panels one above the other over a common axis of steps.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace einc {

enum class LineStyle : uint8_t { thin, dotted };  // dotted: thicker, with a dot at each point

struct PlotLine {
  std::vector<std::pair<double, double>> points;  // x, y; in the order of x
  size_t color = 0;                               // the same number, the same color
  LineStyle style = LineStyle::thin;
};

struct PlotPanel {
  std::string label;  // of the y axis, with its unit
  double height = 160;
  std::vector<PlotLine> lines;
  bool may_be_logarithmic = false;  // it is where its values are positive and two decades or more apart
};

struct PlotKey {
  std::string text;
  size_t color = 0;
};

struct Plot {
  std::vector<PlotKey> keys;       // one for each color
  std::vector<std::string> notes;  // what the styles mean, beside them
  std::string x_label;
  std::vector<PlotPanel> panels;
};

std::string plot_svg(const Plot& plot);

// From `low` to `high` about `count` round numbers: 1, 2 or 5 times a power of ten apart.
std::vector<double> plot_ticks(double low, double high, int count);
// From `low` to `high`, both positive, for a logarithmic axis: powers of ten, with 2 and 5 times these up to three decades.
std::vector<double> logarithmic_ticks(double low, double high);

}  // namespace einc
