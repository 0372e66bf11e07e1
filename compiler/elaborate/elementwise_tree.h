// SPDX-License-Identifier: Apache-2.0
// What one expression puts together element by element, for the rule on outer products: some part of the tree must hold all
// axes of its real-valued result. A part is a leaf (a tensor, a call, a reduction, an annotated subexpression), a product or
// quotient of two tensors, or a part whose values are integers or bools (positions, masks). The axes of every part are among
// those of the result, so comparing their numbers is enough. A scalar factor never matters: it makes no product of tensors.
#pragma once
#include <span>

#include "compiler/ir/graph.h"
#include "dsl/source.h"

namespace einc {

class ElementwiseTree {
 public:
  // The op that first brought as many axes together, though neither operand has all of them.
  struct Crossing {
    NodeId left, right;
    Span left_span, right_span, span;
    int axes = 0;
  };

  void add_leaf(const Graph& graph, NodeId leaf);
  void add_op(const Graph& graph, MapFn fn, std::span<const NodeId> operands, std::span<const Span> spans, Span whole, NodeId result);
  // `node` has the values of what was made last, in another dtype or without a gradient.
  void pass_on(NodeId node) { made_ = node; }
  // Takes in the tree of an operand that was evaluated by itself.
  void merge(const ElementwiseTree& operand);

  bool made(NodeId node) const { return made_.valid() && made_ == node; }
  // No leaf has all axes of the result: their order was not given by any of them.
  bool is_outer(const Graph& graph, NodeId result) const { return made(result) && leaf_axes_ < graph.type(result).rank(); }
  // The rule's breach: no part has all axes of a real-valued result.
  bool is_accidental(const Graph& graph, NodeId result) const;
  const Crossing& crossing() const { return crossing_; }

 private:
  int leaf_axes_ = 0;  // the most axes that one leaf has
  int held_axes_ = 0;  // or any other part
  NodeId made_;        // by the last op
  Crossing crossing_;
};

}  // namespace einc
