// SPDX-License-Identifier: Apache-2.0
// Windows over an image with zeros around it: which products of a contraction those zeros have, and how a tile's rows leave them out.
#pragma once
#include <optional>
#include <vector>

#include "compiler/lower/kernel.h"

namespace einc {

// From `begin` to before `end`; empty where they are equal.
struct Stretch {
  int64_t begin = 0, end = 0;
  int64_t length() const { return end - begin; }
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

// Elements of the window at a place that lie in the image, and places whose windows have an element in it.
Stretch elements_inside(const PaddedAxis& axis, int64_t place);
Stretch places_inside(const PaddedAxis& axis, int64_t element);
// Of all pairs of a place and an element, those that lie in the image.
int64_t pairs_inside(const PaddedAxis& axis);

// Elements of windows along a line that the same rows of a tile have in the image.
struct RowsOfElements {
  Stretch elements, rows;
  friend bool operator==(const RowsOfElements&, const RowsOfElements&) = default;
};
// How tiles from number `first` of a line on, up to the next of the list, multiply. Elements that no row has in the image are in no part.
struct TilesOfLine {
  int64_t first = 0;
  std::vector<RowsOfElements> parts;
};

// A contraction's rows are lines of places, its depths lines of a window's elements. A tile of rows lies within a line. `lines`: whole
// lines of a window are left out; `places`: elements within one.
struct LeftOutPadding {
  std::optional<PaddedAxis> lines{}, places{};

  int64_t line_rows() const { return lines ? lines->row_apart : places->places; }
  int64_t line_depths() const { return lines ? lines->depth_apart : places->depth_apart * places->elements; }
  // Depths of an element of a line.
  int64_t element_depths() const { return places ? places->depth_apart : line_depths(); }
  // Of all products, the share that is made.
  double share() const;
  // By numbers of tiles, ascending.
  std::vector<TilesOfLine> tiles_of_line(int64_t tile_rows) const;
};

// Of a contraction's padded axes.
std::optional<LeftOutPadding> left_out_padding(const Contraction& contraction);

}  // namespace einc
