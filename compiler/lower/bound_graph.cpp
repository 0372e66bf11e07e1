// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/bound_graph.h"

#include <algorithm>
#include <unordered_map>

#include "runtime/base/failure.h"

namespace einc {

int64_t BoundGraph::count(NodeId id) const {
  int64_t n = 1;
  for (int64_t extent : shape(id)) n *= extent;
  return n;
}

int64_t BoundGraph::count_in_memory(NodeId id) const {
  const int64_t more = padding_of(id);
  return more == 0 ? count(id) : count(id) / shape(id).back() * (shape(id).back() + more);
}

MemoryLayout BoundGraph::layout(NodeId id) const {
  return {shape(id), order.empty() ? SmallVector<int, 6>{} : order[id.index], padding_of(id)};
}

bool BoundGraph::lies_as(NodeId id, const MemoryLayout& layout) const {
  if (shape(id) != layout.shape || padding_of(id) != layout.padding) return false;
  return order.empty() ? layout.order.empty() : order[id.index] == layout.order;
}

std::vector<NodeId> BoundGraph::read_whole() const {
  std::vector<NodeId> read;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (live[i] && (graph.nodes[i].op == Op::scan || is_collective(graph.nodes[i].op)))
      for (NodeId x : graph.nodes[i].operands)
        if (!is_source(graph[x].op)) read.push_back(x);
  return read;
}

int64_t BoundGraph::value(const Poly& size) const {
  const auto value = size.evaluate_integer(dims);
  if (!value) throw RuntimeFailure(FailureKind::data, "'" + size.str() + "' has no integer value for these dims");
  return *value;
}

double BoundGraph::value(const ScalarValue& scalar) const {
  if (const double* number = std::get_if<double>(&scalar)) return *number;
  return std::get<Poly>(scalar).evaluate(dims)->to_double();
}

BoundGraph bind_graph(const Graph& graph, const Bindings& given, std::vector<bool> live) {
  BoundGraph bound{graph, graph.dims.bind(given).values, {}, std::move(live)};
  std::unordered_map<Poly, int64_t> known;
  bound.shapes.resize(graph.size());
  bound.known.resize(graph.size());
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    const auto is_known = [&](NodeId x) { return bound.known[x.index]; };
    bound.known[i] =
        node.op == Op::constant || (node.op == Op::map && node.type.axes.empty() && std::ranges::all_of(node.operands, is_known));
    if (!bound.live[i]) continue;
    for (const Axis& axis : node.type.axes) {
      auto found = known.find(axis.size);
      if (found == known.end()) found = known.emplace(axis.size, bound.value(axis.size)).first;
      bound.shapes[i].push_back(found->second);
    }
  }
  return bound;
}

Shape BoundGraph::strides(NodeId id) const {
  Shape extents = shape(id);
  if (!extents.empty()) extents.back() += padding_of(id);
  if (order.empty() || order[id.index].empty()) return strides_of(extents);
  Shape strides(extents.size(), 1);
  int64_t step = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(order[id.index][i]);
    strides[axis] = step;
    step *= extents[axis];
  }
  return strides;
}

Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

}  // namespace einc
