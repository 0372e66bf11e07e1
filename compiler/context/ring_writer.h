// SPDX-License-Identifier: Apache-2.0
// Writes one attention of a ring into a graph: n steps forward and n backward (ring_attention.h), each of which attention's kernels make by
// themselves.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/context/ring_form.h"
#include "compiler/context/ring_positions.h"

namespace einc {

class RingWriter {
 public:
  using Whole = std::function<NodeId(NodeId)>;  // a node of the graph given, in the new one

  // `free`: as of free_nodes.
  RingWriter(const Graph& graph, const RingForm& form, const std::vector<bool>& free, RingOrder order, Builder& build, Whole whole);

  // What stands for the forward's folds and results, or for the backward's results; each by its node given.
  std::vector<std::pair<NodeId, NodeId>> forward();
  std::vector<std::pair<NodeId, NodeId>> backward();

 private:
  // ---- axes
  int row() const { return form_.split->row; }
  int key() const { return found_.key; }
  static int find(const ScoreAxes& axes, int axis);
  int ring_of(const ScoreAxes& axes) const;
  bool is_pair(const ScoreAxes& axes) const { return find(axes, row()) >= 0 && find(axes, key()) >= 0; }
  // Gradients of keys and values: those are elsewhere at the next step.
  bool goes_round(NodeId id) const { return find(axes_of(id), row()) < 0; }
  ScoreAxes axes_of(NodeId id) const;
  ScoreAxes label_axes(NodeId id, int count) const;
  Placed place_of(const ScoreAxes& axes) const;
  std::vector<Axis> axes_in_parts(const Type& type, const ScoreAxes& axes, const Placed& place) const;
  void at_origin(NodeId id);

  // ---- values of a step
  Placed operand(NodeId id, const ScoreAxes& axes, int c);
  Placed step(NodeId id, int c);
  Placed append(NodeId id, Node node, const ScoreAxes& axes, const Placed& place, std::span<const Placed> operands);
  Placed elementwise(NodeId id, const ScoreAxes& axes, int c);
  Placed permuted(NodeId id, Node node, const ScoreAxes& axes, int c);
  Placed contraction(NodeId id, int c);
  Placed folded(NodeId id, const Placed& values);

  // ---- values that are not of the attention
  NodeId split(NodeId whole, const Placed& place);
  Placed divided(NodeId id, const ScoreAxes& axes);
  Placed met(NodeId id, const ScoreAxes& axes, int c);
  void meet(int c);
  Placed taken(NodeId id, const ScoreAxes& axes, int c);
  Placed of_indices(NodeId id, const ScoreAxes& axes, int c);
  Placed compared(NodeId id, const ScoreAxes& axes, int c);
  bool compares_places(NodeId id, const ScoreAxes& axes) const;

  // ---- results
  NodeId by_row(MapFn fn, const Placed& value, const ScoreAxes& axes, const Placed& number, const ScoreAxes& rows);
  NodeId merged(NodeId id, const Placed& value);

  const Graph& graph_;
  const RingForm& form_;
  const FoundAttention& found_;
  const std::vector<bool>& free_;
  const RingOrder order_;
  Builder& build_;
  const Whole whole_;
  const Axis devices_;
  RingPositions positions_;
  Phase phase_ = Phase::forward;
  Placed running_max_;
  std::vector<std::tuple<NodeId, ScoreAxes, Phase>> met_;             // what goes round
  std::map<std::tuple<NodeId, int, Phase>, Placed> made_;             // of pairs, by step
  std::map<std::tuple<NodeId, int, int, Phase, int>, Placed> parts_;  // of others, by where rows and keys lie
};

}  // namespace einc
