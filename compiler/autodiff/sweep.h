// SPDX-License-Identifier: Apache-2.0
// One pass backwards over a graph from values whose gradients are known. What reached a node is added up when the sweep comes to it, and
// handed on by the node's rule; scans hand on to all their operands together.
#pragma once
#include <map>
#include <span>
#include <vector>

#include "compiler/autodiff/backward.h"
#include "compiler/autodiff/custom_gradients.h"

namespace einc {

struct Seed {
  NodeId value, gradient;  // of its type
};

struct SweepOptions {
  std::span<const NodeId> apart = {};  // wanted nodes whose parts are not added up: arrived() instead of result()
  CustomGradients* custom = nullptr;   // gradients that the program writes itself
  bool* met_custom = nullptr;          // set when one of them was used
};

class Sweep {
 public:
  Sweep(Builder& build, std::span<const Seed> seeds, std::span<const NodeId> wrt, const SweepOptions& options);

  // The gradient with respect to a wanted node, of its type; invalid: none arrived.
  NodeId result(NodeId w) const;
  const std::vector<Partial>& arrived(NodeId w) const { return pending_[w.index]; }

 private:
  void visit(NodeId id);
  void hand_to_scan(NodeId result, NodeId gradient);  // of its shape
  void visit_scan(NodeId id);
  bool through_custom(NodeId id);
  NodeId cotangent_of(NodeId result);
  void propagate(const Backward& b);
  void add(NodeId operand, Partial part);

  Builder& build_;
  const SweepOptions options_;
  std::vector<NodeId> finished_;  // first results of calls that are done
  std::vector<bool> depends_;
  std::vector<std::vector<Partial>> pending_;  // what reached each node; a visited wanted node keeps its gradient here
  std::vector<bool> wanted_, apart_;
  std::map<uint32_t, std::vector<NodeId>> of_results_;  // by scan: the gradients of its results
};

}  // namespace einc
