// SPDX-License-Identifier: Apache-2.0
// What keeps a step from storing what is not finite: numbers that are looked at before params and states change, and where bounds show
// that finite gradients give finite updates. Nodes of the graph that kernels are formed from; compiler/fuse/guard_updates.h makes them.
#pragma once
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"
#include "runtime/program/executable.h"

namespace einc {

struct UpdateGuard {
  struct Check {
    NonFinite means = NonFinite::loss;
    NodeId number;
  };
  // `least` and `most` of what the target would take are made by kernels that run where the bound does not suffice.
  struct Bounded {
    NodeId target;
    uint32_t bound = 0;
    NodeId least, most;
  };
  std::vector<Check> checks;
  std::vector<BoundOp> bounds;  // whose buffers are nodes
  std::vector<Bounded> bounded;
  std::vector<NodeId> numbers;                          // that bounds read, besides checks and sources
  NodeId verdict;                                       // NaN where some `least` is; among the checks
  std::vector<std::pair<NodeId, NodeId>> before;        // a check and the elements of a state that are replaced where it lies, after it
  std::vector<std::pair<NodeId, NodeId>> dry_products;  // a dry copy of a gradient's product, and the gradient, which is made after it
  // Per node of a bounded update's check alone: a number, the same for the updates of one gradient, another for the verdict; 0: no such.
  std::vector<uint32_t> dry;
  std::vector<bool> guarded;  // per node: stored after all checks

  uint32_t dry_number(NodeId id) const { return id.index < dry.size() ? dry[id.index] : 0; }
  bool is_dry(NodeId id) const { return dry_number(id) != 0; }
  bool is_guarded(NodeId id) const { return id.index < guarded.size() && guarded[id.index]; }
  // Values that a run looks at besides its results.
  std::vector<NodeId> roots() const;
};

}  // namespace einc
