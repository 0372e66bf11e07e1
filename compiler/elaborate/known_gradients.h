// SPDX-License-Identifier: Apache-2.0
// Gradients that a program has asked for before. A recurrence's gradient is a scan, made for all that is wanted together: two calls
// `grad(y, a)` and `grad(y, b)` share it when the first asks for both. What nobody reads in the end is dropped (simplify).
#pragma once
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/autodiff/differentiate.h"

namespace einc {

class KnownGradients {
 public:
  // `sources_too`: where y has a recurrence in it, the gradients by all inputs and params are made with those asked for.
  enum class Made { as_asked, sources_too };
  // As differentiate, of a scalar.
  std::vector<NodeId> of(Builder& build, NodeId y, std::span<const NodeId> wrt, CustomGradients& custom, Made made);

  size_t size() const { return list_.size(); }
  void resize(size_t count) { list_.resize(count); }  // forgets the youngest: their nodes are gone, or moved into a scan's body

 private:
  struct Known {
    NodeId y;
    std::unordered_map<uint32_t, NodeId> by;  // invalid: y does not depend on it
  };
  std::vector<Known> list_;
};

}  // namespace einc
