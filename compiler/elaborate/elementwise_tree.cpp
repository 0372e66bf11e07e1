// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/elementwise_tree.h"

#include <algorithm>

namespace einc {
namespace {

bool has_axis(const Type& type, const Axis& axis) {
  return std::any_of(type.axes.begin(), type.axes.end(), [&](const Axis& other) { return other.name == axis.name; });
}

bool lacks_some(const Type& type, const Type& other) {
  return std::any_of(other.axes.begin(), other.axes.end(), [&](const Axis& axis) { return !has_axis(type, axis); });
}

}  // namespace

void ElementwiseTree::add_leaf(const Graph& graph, NodeId leaf) {
  const int rank = graph.type(leaf).rank();
  leaf_axes_ = std::max(leaf_axes_, rank);
  held_axes_ = std::max(held_axes_, rank);
}

void ElementwiseTree::add_op(const Graph& graph, MapFn fn, std::span<const NodeId> operands, std::span<const Span> spans, Span whole,
                             NodeId result) {
  made_ = result;
  const Type& type = graph.type(result);
  const auto rank_of = [&](NodeId node) { return graph.type(node).rank(); };
  const bool product = (fn == MapFn::mul || fn == MapFn::div) &&
                       std::all_of(operands.begin(), operands.end(), [&](NodeId node) { return rank_of(node) > 0; });
  if (product || !is_floating(type.dtype)) {
    held_axes_ = std::max(held_axes_, type.rank());
    return;
  }
  if (type.rank() <= crossing_.axes) return;
  size_t left = 0;
  for (size_t k = 1; k < operands.size(); ++k)
    if (rank_of(operands[k]) > rank_of(operands[left])) left = k;
  if (rank_of(operands[left]) == type.rank()) return;
  size_t right = 0;  // some operand has an axis that the first lacks
  while (!lacks_some(graph.type(operands[left]), graph.type(operands[right]))) ++right;
  crossing_ = {operands[left], operands[right], spans[left], spans[right], whole, type.rank()};
  if (right < left) std::swap(crossing_.left, crossing_.right), std::swap(crossing_.left_span, crossing_.right_span);
}

void ElementwiseTree::merge(const ElementwiseTree& operand) {
  leaf_axes_ = std::max(leaf_axes_, operand.leaf_axes_);
  held_axes_ = std::max(held_axes_, operand.held_axes_);
  if (operand.made_.valid()) made_ = operand.made_;
  if (operand.crossing_.axes > crossing_.axes) crossing_ = operand.crossing_;
}

bool ElementwiseTree::is_accidental(const Graph& graph, NodeId result) const {
  return made(result) && is_floating(graph.type(result).dtype) && held_axes_ < graph.type(result).rank();
}

}  // namespace einc
