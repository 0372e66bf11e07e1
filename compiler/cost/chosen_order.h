// SPDX-License-Identifier: Apache-2.0
// Which costs stand on the order that an einsum of three or more operands was given: another binding of the dims may choose another.
#pragma once
#include <array>
#include <string>
#include <unordered_set>
#include <vector>

#include "compiler/cost/op_cost.h"
#include "compiler/ir/graph.h"

namespace einc {

class ChosenOrders {
 public:
  ChosenOrders(const Graph& graph, const std::vector<bool>& constant, const std::vector<FlopCost>& costs, const std::vector<NodeId>& saved);

  bool node(NodeId id) const { return nodes_[id.index]; }
  bool flops(Phase phase, FlopClass kind) const { return flops_[static_cast<size_t>(phase)][static_cast<size_t>(kind)]; }
  bool phase(Phase phase) const;
  bool step() const { return phase(Phase::forward) || phase(Phase::backward) || phase(Phase::optimizer); }
  bool saved() const { return module_saved(""); }
  // Of a module with all below it; "" is the whole program.
  bool module_forward(const std::string& path) const { return forward_.count(path) != 0; }
  bool module_step(const std::string& path) const { return step_.count(path) != 0; }
  bool module_saved(const std::string& path) const { return saved_.count(path) != 0; }

 private:
  std::vector<bool> nodes_;
  std::array<std::array<bool, kFlopClasses>, 3> flops_{};
  std::unordered_set<std::string> forward_, step_, saved_;
};

}  // namespace einc
