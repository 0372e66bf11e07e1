// SPDX-License-Identifier: Apache-2.0
// Line charts as SVG: panels one above the other over a common x axis.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace einc {

enum class LineStyle : uint8_t { thin, faint, dotted };  // dotted: thicker, with a dot at each point
// Where wide: where the values are positive and two decades or more apart.
enum class YAxis : uint8_t { linear, logarithmic_where_wide, logarithmic };

struct PlotLine {
  std::vector<std::pair<double, double>> points;  // x, y; in the order of x
  size_t color = 0;                               // the same number, the same color
  LineStyle style = LineStyle::thin;
};

struct PlotPanel {
  std::string label;  // of the y axis, with its unit
  double height = 160;
  std::vector<PlotLine> lines;
  YAxis y_axis = YAxis::linear;  // logarithmic: all values are positive
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
// From `low` to `high`, both positive, for a logarithmic axis: powers of ten, with 2 and 5 times these up to three decades. Where fewer
// than three of these lie there, round numbers.
std::vector<double> logarithmic_ticks(double low, double high);

}  // namespace einc
