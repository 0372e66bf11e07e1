// SPDX-License-Identifier: Apache-2.0
// A graph with numbers in the place of dims: what kernels are formed from.
#pragma once
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/lower/update_guard.h"
#include "runtime/base/small_vector.h"

namespace einc {

using Shape = SmallVector<int64_t, 6>;

// Where the elements of a value lie, from its first one on.
struct MemoryLayout {
  Shape shape;
  SmallVector<int, 6> order{};  // as BoundGraph::order has it
  int64_t padding = 0;
};

struct BoundGraph {
  const Graph& graph;
  Bindings dims;              // every dim
  std::vector<Shape> shapes;  // per node
  std::vector<bool> live;     // needed by the roots of the run
  std::vector<bool> known{};  // single numbers that the program's text and sizes fix
  // Per node, of values that lie otherwise than row-major: its axes as they lie in memory, outermost first.
  std::vector<SmallVector<int, 6>> order{};
  // Per node, of values whose rows lie apart by more than they hold: elements at the end of each row that hold nothing.
  std::vector<int64_t> padding{};
  // Per node: a scatter_add of at most one update to a row, which each element makes by asking whether it is the one.
  std::vector<bool> one_hot{};
  UpdateGuard guard{};                     // of the run's updates
  std::vector<bool> late{}, where_read{};  // per node: of the forward, made again in the backward; by each that reads it
  std::vector<bool> twice{};               // per node: one of those, or what it is a copy of
  std::vector<NodeId> again{}, given{};    // per node: its copy, what it is a copy of; invalid: none
  std::vector<bool> pulled{};              // per node, of a pullback: follows from gradients of outputs

  const Node& operator[](NodeId id) const { return graph[id]; }
  const Shape& shape(NodeId id) const { return shapes[id.index]; }
  Shape strides(NodeId id) const;  // in memory
  int64_t count(NodeId id) const;
  int64_t padding_of(NodeId id) const { return padding.empty() ? 0 : padding[id.index]; }
  bool is_late(NodeId id) const { return !late.empty() && late[id.index]; }
  bool is_made_twice(NodeId id) const { return !twice.empty() && twice[id.index]; }
  NodeId again_of(NodeId id) const { return !again.empty() && again[id.index].valid() ? again[id.index] : id; }
  NodeId given_of(NodeId id) const { return !given.empty() && given[id.index].valid() ? given[id.index] : id; }
  bool is_pulled(NodeId id) const { return !pulled.empty() && pulled[id.index]; }
  bool is_one_hot(NodeId id) const { return !one_hot.empty() && one_hot[id.index]; }
  int64_t count_in_memory(NodeId id) const;  // with what pads its rows
  MemoryLayout layout(NodeId id) const;
  bool lies_as(NodeId id, const MemoryLayout& layout) const;  // element by element
  int64_t value(const Poly& size) const;                      // an integer formula's value
  // Values in between that scans and collectives read: iterations and other devices find them row-major in memory.
  std::vector<NodeId> read_whole() const;
  double value(const ScalarValue& scalar) const;
};

// Whether a node's value is given to a run, not computed in it.
inline bool is_source(Op op) { return op == Op::input || op == Op::param || op == Op::state; }

// Nodes that the outputs, the loss, and the updates need; with `training` false outputs and user states' updates alone.
// `given` binds all free dims, and its conditions hold (bind before).
BoundGraph bind_graph(const Graph& graph, const Bindings& given, std::vector<bool> live);

// Elements between neighbours along each axis of a row-major tensor.
Shape strides_of(const Shape& shape);

}  // namespace einc
