// SPDX-License-Identifier: Apache-2.0
// The labels of a contraction's three tensors as these lie in memory, below views that only rearrange.
#pragma once
#include <array>
#include <map>
#include <vector>

#include "compiler/lower/bound_graph.h"
#include "runtime/base/small_vector.h"

namespace einc {

// Which of left, right and result have a label, as bits 1, 2 and 4.
using LabelGroup = int;
inline constexpr LabelGroup kRowLabels = 1 | 4, kColumnLabels = 2 | 4, kDepthLabels = 1 | 2, kBatchLabels = 7;

// Axes or labels: few of each, of which planning looks at many.
using LabelList = SmallVector<int, 4>;

// What a node reads through permutes, merges and axes of one step left out: the node below them, and of each axis the axes there that it is
// made of.
struct NodeBelow {
  NodeId node;
  std::vector<LabelList> axes;
};
NodeBelow below_views(const BoundGraph& graph, NodeId id);

// A label that one of the tensors has as several axes is several labels.
struct ContractionLabels {
  std::array<NodeId, 3> tensors;             // left, right and result, below views
  std::array<std::vector<LabelList>, 3> of;  // their labels, by axis
  std::vector<LabelGroup> groups;            // by label
  std::vector<int64_t> extents;

  // `result`: the node that is stored of it, with its axes.
  ContractionLabels(const BoundGraph& graph, NodeId contraction, NodeId result);
  // Whether only summed labels are an axis of a tensor.
  bool is_depth(size_t tensor, size_t axis) const;
  // Steps of all labels of a group together.
  int64_t count(LabelGroup group) const;

 private:
  bool divides_alike(const BoundGraph& graph, const NodeBelow& below, const LabelList& whole, const std::map<int, LabelList>& parts) const;
  void divide(const BoundGraph& graph, NodeId node, const LabelList& axes, LabelList& made);
};

}  // namespace einc
