// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/report/document.h"

namespace einc {
namespace {

constexpr double kWidth = 900, kLeft = 92, kRight = 24, kGap = 30, kBelow = 52, kKeyHeight = 22;
constexpr size_t kMostPoints = 1200;  // of a line; more are drawn as the smallest and largest of each stretch
constexpr const char* kColors[] = {"#1f5fa8", "#c4501b", "#2e7d4f", "#8a3f9e", "#a67c00", "#c22f4d", "#3b7f8c", "#6b5b4b"};

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void take(double value) { low = std::min(low, value), high = std::max(high, value); }
  bool empty() const { return low > high; }
};

// Where a panel's values stand between its bottom, 0, and its top, 1.
class Scale {
 public:
  Scale(Range values, YAxis axis) : range_(values.empty() ? Range{0, 1} : values) {
    const bool wide = range_.low > 0 && range_.high >= kWorthLogarithms * range_.low;
    logarithmic_ = axis == YAxis::logarithmic || (axis == YAxis::logarithmic_where_wide && wide);
    if (logarithmic_) range_ = {std::log10(range_.low), std::log10(range_.high)};
    // A single value of a logarithmic axis stands between its half and its double, be it 1 or not.
    const double margin = range_.low == range_.high ? (logarithmic_ ? std::log10(2) : std::max(std::abs(range_.low) * 0.1, 1e-9))
                                                    : 0.05 * (range_.high - range_.low);
    const bool from_zero = !logarithmic_ && range_.low >= 0 && range_.low < 0.35 * range_.high;
    range_.high += margin;
    range_.low = from_zero ? 0 : range_.low - margin;
  }

  bool logarithmic() const { return logarithmic_; }
  double at(double value) const { return ((logarithmic_ ? std::log10(value) : value) - range_.low) / (range_.high - range_.low); }
  std::vector<double> ticks(int count) const {
    return logarithmic_ ? logarithmic_ticks(std::pow(10, range_.low), std::pow(10, range_.high))
                        : plot_ticks(range_.low, range_.high, count);
  }

 private:
  static constexpr double kWorthLogarithms = 100;  // largest over smallest: below it a linear axis shows all
  Range range_;
  bool logarithmic_ = false;
};

// With as many decimals as neighbours need; thousands and millions short.
std::string tick_text(double value, const std::vector<double>& ticks) {
  if (value == 0) return "0";
  const double largest = std::max(std::abs(ticks.front()), std::abs(ticks.back()));
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : largest;
  if (largest >= 1e9 || largest < 1e-3) return fmt::format("{:.3g}", value);
  const char* suffix = largest >= 1e6 ? " M" : largest >= 1e4 ? " k" : "";
  const double unit = largest >= 1e6 ? 1e6 : largest >= 1e4 ? 1e3 : 1;
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step / unit) - 1e-9)), 0, 6);
  return fmt::format("{:.{}f}{}", value / unit, decimals, suffix);
}

std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points) {
  if (points.size() <= kMostPoints) return points;
  std::vector<std::pair<double, double>> result;
  const size_t stretch = 2 * points.size() / kMostPoints + 1;
  for (size_t begin = 0; begin < points.size(); begin += stretch) {
    const auto first = points.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = points.begin() + static_cast<std::ptrdiff_t>(std::min(begin + stretch, points.size()));
    auto [low, high] = std::minmax_element(first, last, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (high < low) std::swap(low, high);
    result.push_back(*low);
    if (high != low) result.push_back(*high);
  }
  return result;
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot) {
    for (const PlotPanel& panel : plot.panels)
      for (const PlotLine& line : panel.lines)
        for (const auto& point : line.points) x_.take(point.first);
    if (x_.empty()) x_ = {0, 1};
    if (x_.low == x_.high) x_.high = x_.low + 1;
  }

  std::string run() {
    double y = 14;
    keys(y);
    for (size_t p = 0; p < plot_.panels.size(); ++p) {
      panel(plot_.panels[p], y, p + 1 == plot_.panels.size());
      y += plot_.panels[p].height + kGap;
    }
    y += kBelow - kGap;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
               "style=\"max-width:100%;height:auto\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"12\" "
               "fill=\"#222\">\n"
               "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
               kWidth, y) +
           body_ + "</svg>\n";
  }

 private:
  template <class... T>
  void add(fmt::format_string<T...> format, T&&... values) {
    body_ += fmt::format(format, std::forward<T>(values)...);
  }
  static const char* color(size_t index) { return kColors[index % std::size(kColors)]; }
  double at_x(double x) const { return kLeft + (x - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight); }

  // One under the other, the notes behind the first.
  void keys(double& y) {
    for (size_t k = 0; k < plot_.keys.size(); ++k) {
      const PlotKey& key = plot_.keys[k];
      add("<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\" stroke=\"{3}\" stroke-width=\"3\"/>\n", kLeft, y + 8, kLeft + 26,
          color(key.color));
      add("<text x=\"{}\" y=\"{}\">{}</text>\n", kLeft + 34, y + 12, html_text(key.text));
      y += kKeyHeight;
    }
    std::string notes;
    for (const std::string& note : plot_.notes) notes += (notes.empty() ? "" : "; ") + note;
    if (!notes.empty()) {
      add("<text x=\"{}\" y=\"{}\" fill=\"#555\">{}</text>\n", kLeft, y + 12, html_text(notes));
      y += kKeyHeight;
    }
    y += 10;
  }

  void panel(const PlotPanel& panel, double top, bool last) {
    Range range;
    for (const PlotLine& line : panel.lines)
      for (const auto& point : line.points) range.take(point.second);
    const Scale scale(range, panel.y_axis);
    const double bottom = top + panel.height, right = kWidth - kRight;
    const auto at_y = [&](double value) { return bottom - scale.at(value) * panel.height; };
    const std::vector<double> y_ticks = scale.ticks(panel.height > 200 ? 7 : 4), x_ticks = plot_ticks(x_.low, x_.high, 9);
    for (const double tick : y_ticks) {
      add("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#e3e3e3\"/>\n", kLeft, at_y(tick), right, at_y(tick));
      add("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 8, at_y(tick) + 4,
          scale.logarithmic() ? fmt::format("{:g}", tick) : tick_text(tick, y_ticks));
    }
    for (const double tick : x_ticks) {
      add("<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#e3e3e3\"/>\n", at_x(tick), top, bottom);
      if (last) add("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", at_x(tick), bottom + 18, tick_text(tick, x_ticks));
    }
    add("<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"#444\"/>\n", kLeft, top, bottom, right);
    add("<text transform=\"translate(26 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", (top + bottom) / 2,
        html_text(panel.label + (scale.logarithmic() ? ", logarithmic" : "")));
    if (last)
      add("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (kLeft + right) / 2, bottom + 40, html_text(plot_.x_label));
    for (const PlotLine& line : panel.lines) {
      const bool dotted = line.style == LineStyle::dotted;
      std::string path;
      for (const auto& [x, y] : thinned(line.points)) path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", at_x(x), at_y(y));
      add("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{}/>\n", path, color(line.color),
          dotted ? "2.2" : "1.2",
          dotted                           ? ""
          : line.style == LineStyle::faint ? " stroke-opacity=\"0.3\""
                                           : " stroke-opacity=\"0.75\"");
      if (dotted && line.points.size() <= 200)
        for (const auto& [x, y] : line.points)
          add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", at_x(x), at_y(y), color(line.color));
    }
  }

  const Plot& plot_;
  Range x_;
  std::string body_;
};

}  // namespace

std::vector<double> plot_ticks(double low, double high, int count) {
  const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
  const double step = power * (rough / power > 5 ? 10 : rough / power > 2 ? 5 : rough / power > 1 ? 2 : 1);
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) ticks.push_back(k * step);
  return ticks;
}

std::vector<double> logarithmic_ticks(double low, double high) {
  const int first = static_cast<int>(std::floor(std::log10(low))), last = static_cast<int>(std::ceil(std::log10(high)));
  const bool few = std::log10(high / low) <= 3;
  std::vector<double> ticks;
  for (int decade = first; decade <= last; ++decade)
    for (const int times : {1, 2, 5}) {
      const double tick = times * std::pow(10, decade);
      if ((times == 1 || few) && tick >= low && tick <= high) ticks.push_back(tick);
    }
  return ticks.size() < 3 ? plot_ticks(low, high, 6) : ticks;
}

std::string plot_svg(const Plot& plot) { return Drawing(plot).run(); }

}  // namespace einc
