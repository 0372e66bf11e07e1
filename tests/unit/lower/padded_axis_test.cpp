// SPDX-License-Identifier: Apache-2.0
// What lies in an image, against an enumeration of all places and elements.
#include "compiler/lower/padded_axis.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

using namespace einc;

namespace {

using Pairs = std::set<std::pair<int64_t, int64_t>>;  // of a place and an element

Pairs pairs_of(const PaddedAxis& axis) {
  Pairs pairs;
  for (int64_t place = 0; place < axis.places; ++place)
    for (int64_t element = 0; element < axis.elements; ++element)
      if (const int64_t at = axis.step * place + axis.dilation * element + axis.first; at >= 0 && at < axis.size)
        pairs.insert({place, element});
  return pairs;
}

template <class Visit>
void for_each_axis(const Visit& visit) {
  for (const int64_t places : {1, 4, 6, 7})
    for (const int64_t elements : {1, 3, 5})
      for (const int64_t step : {1, 2, 3})
        for (const int64_t dilation : {1, 2})
          for (const int64_t first : {-4, -2, -1, 0, 2})
            for (const int64_t size : {1, 4, 7}) {
              const PaddedAxis axis{1, places, 4, elements, step, dilation, first, size};
              CAPTURE(fmt::format("{} places, {} elements, step {}, dilation {}, first {}, size {}", places, elements, step, dilation,
                                  first, size));
              visit(axis);
            }
}

}  // namespace

TEST_CASE("padded axes: what lies in the image") {
  for_each_axis([](const PaddedAxis& axis) {
    const Pairs wanted = pairs_of(axis);
    Pairs by_place, by_element;
    for (int64_t place = 0; place < axis.places; ++place)
      for (int64_t k = elements_inside(axis, place).begin; k < elements_inside(axis, place).end; ++k) by_place.insert({place, k});
    for (int64_t k = 0; k < axis.elements; ++k)
      for (int64_t place = places_inside(axis, k).begin; place < places_inside(axis, k).end; ++place) by_element.insert({place, k});
    CHECK(by_place == wanted);
    CHECK(by_element == wanted);
    CHECK(pairs_inside(axis) == static_cast<int64_t>(wanted.size()));
  });
}

TEST_CASE("padded axes: tiles of a line multiply what lies in the image, in the order of elements") {
  for_each_axis([](const PaddedAxis& axis) {
    for (int64_t tile_rows = 1; tile_rows <= axis.places; ++tile_rows) {
      if (axis.places % tile_rows != 0) continue;
      CAPTURE(tile_rows);
      const std::vector<TilesOfLine> kinds = LeftOutPadding{std::nullopt, axis}.tiles_of_line(tile_rows);
      REQUIRE(kinds.front().first == 0);
      Pairs found;
      for (int64_t tile = 0; tile < axis.places / tile_rows; ++tile) {
        size_t kind = 0;
        while (kind + 1 < kinds.size() && kinds[kind + 1].first <= tile) ++kind;
        int64_t next = 0;
        for (const RowsOfElements& part : kinds[kind].parts) {
          CHECK(part.elements.begin >= next);
          next = part.elements.end;
          for (int64_t k = part.elements.begin; k < part.elements.end; ++k)
            for (int64_t row = part.rows.begin; row < part.rows.end; ++row) CHECK(found.insert({tile * tile_rows + row, k}).second);
        }
      }
      CHECK(found == pairs_of(axis));
    }
  });
}
