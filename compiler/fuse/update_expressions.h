// SPDX-License-Identifier: Apache-2.0
// The elementwise expressions behind updates: down to what a step has before it changes anything.
#pragma once
#include <vector>

#include "compiler/lower/bound_graph.h"

namespace einc {

class UpdateExpressions {
 public:
  explicit UpdateExpressions(const BoundGraph& graph);

  // Read by updates alone, through whatever.
  bool is_only_updated(NodeId id) const { return only_updated_[id.index]; }
  bool is_gradient(NodeId id) const { return gradient_[id.index]; }
  // Where an expression ends: sources, gradients, what is no elementwise function, single numbers that more than sources make, and values
  // of the forward that others read as well.
  bool is_leaf(NodeId id) const;
  // A map or cast, and no leaf.
  bool is_expression(NodeId id) const;
  const std::vector<NodeId>& readers(NodeId id) const { return readers_[id.index]; }

 private:
  void find_only_updated();
  void find_numbers();

  const BoundGraph& graph_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> only_updated_, gradient_, number_;  // number: one, made of sources' numbers alone
};

}  // namespace einc
