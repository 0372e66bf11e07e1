// SPDX-License-Identifier: Apache-2.0
// Which values integers may take so that everything they index is there: for made-up inputs, where a program has no data.
#pragma once
#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

struct IndexRange {
  int64_t low = INT64_MIN, high = INT64_MAX;  // both included; low above high: no value fits
  bool is_bounded() const { return high != INT64_MAX; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

// For each node, read off the gathers, scatters and comparisons with positions (one-hot) that it reaches through views, casts,
// choices and arithmetic with known numbers; where it reaches several, the range they share. `values`: of all dims.
std::vector<IndexRange> index_ranges(const Graph& graph, const Bindings& values);

// What to draw an integer input from: its range, or 0 and 1 where nothing is known of it.
struct DrawRange {
  int64_t low = 0, count = 2;
};
DrawRange draw_range(const IndexRange& range, DType dtype);

}  // namespace einc
