// SPDX-License-Identifier: Apache-2.0
// Gradients that need no look of their own. No element of a sum of K products is larger than K times the largest magnitude of its left
// operand times that of its right one; and where an operand holds what is not finite, so does the sum. For small batches the operands
// have fewer elements than the gradient of a weight matrix, whose update may then join the product that makes it.
#pragma once
#include "compiler/fuse/update_expressions.h"

namespace einc {

class BoundedProducts {
 public:
  BoundedProducts(const BoundGraph& graph, const UpdateExpressions& expressions);

  // What to multiply the two magnitudes of a gradient's operands by for its bound; 0 where the gradient is to be looked at itself: it is no
  // product, others than updates read it, or its operands, which stay in memory until all is looked at, are not small beside it.
  double factor(NodeId gradient) const;

 private:
  bool is_read_by_updates(NodeId gradient) const;
  double terms(const Node& product) const;

  const BoundGraph& graph_;
  const UpdateExpressions& expressions_;
  // Per node: an elementwise value of an exponential. Probabilities of attention are, which lie nowhere unless something looks at them.
  std::vector<bool> exponential_;
  std::vector<bool> output_;  // per node
};

}  // namespace einc
