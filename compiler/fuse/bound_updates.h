// SPDX-License-Identifier: Apache-2.0
// The bounds of updates as a list of interval operations: one for each node of their expressions.
#pragma once
#include <functional>
#include <unordered_map>
#include <vector>

#include "compiler/fuse/update_expressions.h"

namespace einc {

class BoundUpdates {
 public:
  // `magnitude`: the node of a number that no element of a value is larger than.
  BoundUpdates(const BoundGraph& graph, const UpdateExpressions& expressions, std::function<NodeId(NodeId)> magnitude)
      : graph_(graph), expressions_(expressions), magnitude_(std::move(magnitude)) {}

  uint32_t bound_of(NodeId value);
  // By op: whether the bound is one at all, with numbers of 1 and elements of params and states from 0 to 1.
  std::vector<bool> known() const;
  // Whether nothing that a run has changes it.
  bool is_constant(uint32_t bound) const { return fixed_[bound]; }
  const std::vector<BoundOp>& ops() const { return ops_; }
  // Single numbers that are read, but sources.
  const std::vector<NodeId>& numbers() const { return numbers_; }

 private:
  uint32_t add(BoundOp op, bool fixed);
  BoundOp leaf(NodeId id);
  BoundOp made_of_nothing(const Node& node) const;

  const BoundGraph& graph_;
  const UpdateExpressions& expressions_;
  std::function<NodeId(NodeId)> magnitude_;
  std::vector<BoundOp> ops_;
  std::vector<bool> fixed_;
  std::vector<NodeId> numbers_;
  std::unordered_map<uint32_t, uint32_t> op_of_;  // by node
};

}  // namespace einc
