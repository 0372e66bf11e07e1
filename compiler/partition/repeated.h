// SPDX-License-Identifier: Apache-2.0
// Axes along which a value repeats what lacks them, or is drawn: a device can make its part of them without the rest, though nothing that
// the value is made of is split.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "compiler/partition/decide.h"

namespace einc {

class RepeatedAxes {
 public:
  // `factors`: by node.
  RepeatedAxes(const Graph& graph, std::span<const Factors> factors);

  // Whether a node's parts may be made by themselves: of some axis of it, or by the optimizer, which makes its part of what follows from
  // params that all devices have.
  bool may_be_made_in_parts(NodeId id) const;
  // How it is computed as `target`; `from` is how it lies, computed as `whole`. nullopt: as a whole, of which parts are taken.
  std::optional<LayoutDecision> in_parts(NodeId id, const LayoutDecision& whole, const Layout& from, const Layout& target,
                                         const LayoutValues& values) const;

 private:
  bool repeats(NodeId id, size_t axis) const;
  bool is_elementwise_optimizer(NodeId id) const;

  const Graph& graph_;
  const std::span<const Factors> factors_;
  std::vector<std::vector<bool>> axes_;  // by node
  std::vector<bool> of_values_;          // by node: not only of constants and indices
};

}  // namespace einc
