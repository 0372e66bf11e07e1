// SPDX-License-Identifier: Apache-2.0
// Values that a kernel makes row by row, since their elements follow from numbers of the whole row, as a norm's and a softmax's do.
#pragma once
#include <memory>
#include <vector>

#include "compiler/lower/bound_graph.h"

namespace einc {

class RowValues {
 public:
  explicit RowValues(const BoundGraph& graph);
  // The number of its last axes that make a row; 0: it has no such rows, or one alone.
  int row_axes(NodeId id) const { return rows_[id.index]; }

 private:
  // A number for each row of a value of so many elements.
  struct RowNumber {
    int axes = 0;
    int64_t elements = 0;
  };
  void find_rows(const BoundGraph& graph, NodeId id);

  std::vector<int> rows_;          // by node
  std::vector<RowNumber> number_;  // likewise; without axes: it is none
};

// The largest or the least of a value's elements.
bool is_whole_extreme(const Node& node);

struct RowMaxima {
  std::unique_ptr<const Graph> graph;
  std::vector<NodeId> at;  // per node given: its place in `graph`
};

// The largest (or least) element of such a value as that of its rows' largest: the bits are the same, and the kernel that goes over rows
// takes a row's on the way, so that nobody stores the value for it. Without a graph where there is none.
RowMaxima divide_maxima(const BoundGraph& graph);

}  // namespace einc
