// SPDX-License-Identifier: Apache-2.0
// Puts a scan together: its body node by node, what it reads of the graph outside, what it hands on and collects. Operands are numbered
// when it is finished.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "compiler/ir/build.h"

namespace einc {

// A node that nothing reads any more, so that others keep their numbers: a constant.
void clear_node(Node& node);

class BodyBuilder {
 public:
  // Nodes of the scan itself get the origin of `outside` as it is.
  BodyBuilder(Builder& outside, Axis axis, Direction direction, int64_t save_every = 0);

  Builder& body() { return body_; }
  Graph& graph() { return *graph_; }
  std::shared_ptr<const Graph> shared() const { return graph_; }
  const Axis& axis() const { return axis_; }
  NodeId append(Node node) { return body_.append(std::move(node)); }

  // A carry of the initial value's type: its value at the start of an iteration.
  NodeId carry(NodeId initial);
  void set_next(size_t carry, NodeId next) { carries_[carry].next = next; }
  void collect(NodeId value) { collected_.push_back(value); }
  void keep(NodeId node) { kept_.push_back(node); }  // though nothing reads it

  // A value outside: a constant is made again inside, another is read whole.
  NodeId outside(NodeId x);
  // Element t of an axis of a value outside; the value moved so that this axis is its first.
  NodeId slice(NodeId x, int axis, const Origin& origin);
  NodeId slice(NodeId stacked, const Origin& origin);  // of the first axis
  NodeId index();                                      // t itself
  // A node of the body becomes the slice of a value outside.
  void replace_by_slice(NodeId node, NodeId stacked);
  // What an input of the body is a slice of; invalid: of nothing.
  NodeId stacked(NodeId input) const;
  NodeId whole(NodeId input) const;

  // What iterations hand on and collect.
  std::vector<NodeId> roots() const;
  // Appends the scan and its results outside: carries, then what was collected. The body is the scan's from then on.
  std::vector<NodeId> finish();

 private:
  struct Input {
    NodeId node, outer;
  };
  struct Carry {
    NodeId state, initial, next;
  };
  NodeId input(std::vector<Input>& list, NodeId outer, Type type, const Origin& origin);
  NodeId repeat(NodeId x);
  void drop_unread();

  Builder& outside_;
  std::shared_ptr<Graph> graph_;
  Builder body_;
  Axis axis_;
  Direction direction_;
  int64_t save_every_;
  Origin origin_;
  std::vector<Input> wholes_, slices_;
  std::vector<Carry> carries_;
  std::vector<NodeId> collected_, kept_;
  std::unordered_map<uint32_t, NodeId> of_outside_, of_stacked_;
  NodeId index_, first_axis_;
};

}  // namespace einc
