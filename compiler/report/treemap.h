// SPDX-License-Identifier: Apache-2.0
// Rectangles with areas in proportion to weights, as square as they come: Bruls, Huizing, van Wijk, "Squarified treemaps" (2000).
#pragma once
#include <span>
#include <vector>

namespace einc {

struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;
};

// One for each weight, in their order; weights are at least 0, and together they fill `whole`.
std::vector<Rectangle> treemap(std::span<const double> weights, Rectangle whole);

}  // namespace einc
