// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/padded_axis.h"

#include <algorithm>

#include "runtime/base/round_up.h"

namespace einc {
namespace {

// The x in 0 .. count-1 for which 0 <= factor * x + first < size.
Stretch inside(int64_t count, int64_t factor, int64_t first, int64_t size) {
  const auto least = [&](int64_t bound) { return std::clamp<int64_t>(divide_up(std::max<int64_t>(bound - first, 0), factor), 0, count); };
  const Stretch found{least(0), least(size)};
  return {found.begin, std::max(found.begin, found.end)};
}

}  // namespace

Stretch elements_inside(const PaddedAxis& axis, int64_t place) {
  return inside(axis.elements, axis.dilation, axis.step * place + axis.first, axis.size);
}

Stretch places_inside(const PaddedAxis& axis, int64_t element) {
  return inside(axis.places, axis.step, axis.dilation * element + axis.first, axis.size);
}

int64_t pairs_inside(const PaddedAxis& axis) {
  int64_t pairs = 0;
  for (int64_t element = 0; element < axis.elements; ++element) pairs += places_inside(axis, element).length();
  return pairs;
}

double LeftOutPadding::share() const {
  double share = 1;
  for (const auto* axis : {&lines, &places})
    if (*axis) share *= static_cast<double>(pairs_inside(**axis)) / static_cast<double>((*axis)->places * (*axis)->elements);
  return share;
}

std::vector<TilesOfLine> LeftOutPadding::tiles_of_line(int64_t tile_rows) const {
  if (!places) return {{0, {{{0, 1}, {0, tile_rows}}}}};
  std::vector<TilesOfLine> tiles;
  for (int64_t first = 0; first < places->places; first += tile_rows) {
    TilesOfLine tile{first / tile_rows, {}};
    for (int64_t element = 0; element < places->elements; ++element) {
      const Stretch of_line = places_inside(*places, element);
      const Stretch rows{std::clamp<int64_t>(of_line.begin - first, 0, tile_rows), std::clamp<int64_t>(of_line.end - first, 0, tile_rows)};
      if (rows.length() == 0) continue;
      if (!tile.parts.empty() && tile.parts.back().rows == rows && tile.parts.back().elements.end == element)
        ++tile.parts.back().elements.end;
      else
        tile.parts.push_back({{element, element + 1}, rows});
    }
    if (tiles.empty() || tiles.back().parts != tile.parts) tiles.push_back(std::move(tile));
  }
  return tiles;
}

std::optional<LeftOutPadding> left_out_padding(const Contraction& contraction) {
  LeftOutPadding found;
  for (const PaddedAxis& axis : contraction.padded) (axis.row_apart == 1 ? found.places : found.lines) = axis;
  return found.lines || found.places ? std::optional(found) : std::nullopt;
}

}  // namespace einc
