// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/treemap.h"

#include <algorithm>
#include <numeric>

namespace einc {
namespace {

// The worst ratio of sides in a row of these areas along a side of that length.
double worst_ratio(std::span<const double> areas, double side) {
  const double sum = std::accumulate(areas.begin(), areas.end(), 0.0);
  const auto [least, most] = std::minmax_element(areas.begin(), areas.end());
  return std::max(side * side * *most / (sum * sum), sum * sum / (side * side * *least));
}

}  // namespace

std::vector<Rectangle> treemap(std::span<const double> weights, Rectangle whole) {
  std::vector<Rectangle> result(weights.size());
  std::vector<size_t> order;
  for (size_t i = 0; i < weights.size(); ++i)
    if (weights[i] > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> areas;
  for (const size_t i : order) areas.push_back(weights[i] / total * whole.width * whole.height);
  for (size_t first = 0; first < areas.size();) {
    // A row along the shorter side, as long as one more makes it no worse.
    const double side = std::min(whole.width, whole.height);  // what is left; rows along the longer one would be slivers
    const auto row_of = [&](size_t count) { return std::span(areas).subspan(first, count); };
    size_t count = 1;
    while (first + count < areas.size() && worst_ratio(row_of(count + 1), side) <= worst_ratio(row_of(count), side)) ++count;
    const double sum = std::accumulate(row_of(count).begin(), row_of(count).end(), 0.0), depth = side > 0 ? sum / side : 0;
    const bool upright = whole.width >= whole.height;
    double at = 0;
    for (size_t i = first; i < first + count; ++i) {
      const double length = depth > 0 ? areas[i] / depth : 0;
      result[order[i]] = upright ? Rectangle{whole.x, whole.y + at, depth, length} : Rectangle{whole.x + at, whole.y, length, depth};
      at += length;
    }
    if (upright)
      whole.x += depth, whole.width -= depth;
    else
      whole.y += depth, whole.height -= depth;
    first += count;
  }
  return result;
}

}  // namespace einc
