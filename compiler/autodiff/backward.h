// SPDX-License-Identifier: Apache-2.0
// What a gradient rule sees: one forward node, the gradient that reached it, and helpers to build the gradient of an
// operand. Gradients are kept small: a Partial leaves out every axis along which it is constant, so the gradient of a mean
// stays one number until an elementwise rule multiplies it by something larger. A rule builds nodes only when it is asked.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "compiler/ir/build.h"

namespace einc {

// A value over some axes of a frame (the axes of a forward node): axis i of `value` is frame axis axes[i], increasing; along
// the axes not listed it is constant.
struct Partial {
  NodeId value;
  AxisList axes;
};

// Elementwise over `frame`. Operands need not be in increasing axis order; the result is, over the axes that occur.
Partial apply_elementwise(Builder& build, MapFn fn, std::span<const Partial> operands, const std::vector<Axis>& frame);

class Backward {
 public:
  Backward(Builder& builder, NodeId forward, Partial gradient);

  Builder& build;
  const NodeId id;         // the forward node
  const Node node;         // a copy: building moves the graph's nodes
  const Partial gradient;  // of y with respect to the node, over its axes

  template <class T>
  const T& attr() const {
    return node.as<T>();
  }
  NodeId operand(int k) const { return node.operands[static_cast<size_t>(k)]; }
  Type operand_type(int k) const { return build.type(operand(k)); }  // a copy, for the same reason
  const std::vector<Axis>& axes() const { return node.type.axes; }

  // A rank-0 constant of the dtype of `beside`.
  NodeId constant(ScalarValue value, NodeId beside) const;
  Partial apply(MapFn fn, std::initializer_list<Partial> operands, const std::vector<Axis>& frame) const;
  // The node with all axes of `frame`: a broadcast unless it has them.
  NodeId full(const Partial& partial, const std::vector<Axis>& frame) const;
  NodeId full_gradient() const { return full(gradient, axes()); }
  // The gradient with at least the given axes of the node present.
  Partial with_axes(std::span<const int> wanted) const;
  // Sums over the frame axes that the operand lacks; map[i] is the frame axis of the operand's axis i.
  Partial sum_to(const Partial& partial, const AxisList& map, const std::vector<Axis>& frame) const;
  // A node's own axes, all of them.
  Partial whole(NodeId value) const { return {value, AxisList::range(build.type(value).rank())}; }
  // A value with positions in any order, permuted so that they increase.
  Partial sorted(NodeId value, const AxisList& positions) const;
};

// Adds what reached one value, over its axes. Zero-padded pieces of slices that lie side by side are joined, not added.
Partial accumulate(Builder& build, std::vector<Partial> contributions, const std::vector<Axis>& frame);

}  // namespace einc
