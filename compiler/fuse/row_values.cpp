// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/row_values.h"

#include "compiler/ir/build.h"
#include "compiler/ir/remap.h"

namespace einc {
namespace {

bool is_elementwise(const Node& node) { return node.op == Op::map || node.op == Op::cast; }

// So many last axes of its operand; 0: others, too.
int last_axes(const Graph& graph, const Node& reduce) {
  const AxisList& axes = reduce.as<ReduceAttr>().axes;
  const int rank = graph.type(reduce.operands[0]).rank();
  for (int i = 0; i < axes.size(); ++i)
    if (axes.find(rank - 1 - i) < 0) return 0;
  return axes.size();
}

}  // namespace

RowValues::RowValues(const BoundGraph& graph) : rows_(graph.graph.size(), 0), number_(graph.graph.size()) {
  for (uint32_t i = 0; i < graph.graph.size(); ++i) {
    const Node& node = graph.graph.nodes[i];
    if (!graph.live[i]) continue;
    if (node.op == Op::reduce) {
      if (graph.count(NodeId{i}) > 1) number_[i] = {last_axes(graph.graph, node), graph.count(node.operands[0])};
    } else if (is_elementwise(node)) {
      find_rows(graph, NodeId{i});
    }
  }
}

// Elements count as made by rows where a number of their own row goes into them, at once or through other such elements. Where the number
// lies along other axes (a map that is no identity), or is of rows of another length, kernels do not go over rows of this value.
void RowValues::find_rows(const BoundGraph& graph, NodeId id) {
  const Node& node = graph[id];
  const int64_t count = graph.count(id);
  for (size_t k = 0; k < node.operands.size(); ++k) {
    const NodeId x = node.operands[k];
    if (node.op == Op::map && !node.as<MapAttr>().maps[k].is_identity()) continue;  // its rows lie otherwise
    const RowNumber& number = number_[x.index];
    if (graph.shape(x) == graph.shape(id)) {
      if (rows_[id.index] == 0) rows_[id.index] = rows_[x.index];
      if (number.axes > 0) number_[id.index] = number;  // what a row's number is made into is one, too
    } else if (number.axes > 0 && number.elements == count && graph[x].type.rank() + number.axes == node.type.rank()) {
      rows_[id.index] = number.axes;
    }
  }
}

bool is_whole_extreme(const Node& node) {
  if (node.op != Op::reduce || node.type.rank() > 0) return false;
  const ReduceFn fn = node.as<ReduceAttr>().fn;
  return fn == ReduceFn::max || fn == ReduceFn::min;
}

RowMaxima divide_maxima(const BoundGraph& given) {
  const RowValues rows(given);
  const auto is_divided = [&](NodeId id) {
    return given.live[id.index] && is_whole_extreme(given[id]) && rows.row_axes(given[id].operands[0]) > 0;
  };
  bool any = false;
  for (uint32_t i = 0; i < given.graph.size(); ++i) any = any || is_divided(NodeId{i});
  if (!any) return {};
  auto graph = std::make_unique<Graph>(without_nodes(given.graph));
  Builder build(*graph);
  std::vector<NodeId> at(given.graph.size());
  for (uint32_t i = 0; i < given.graph.size(); ++i) {
    Node node = given.graph.nodes[i];
    for (NodeId& x : node.operands) x = at[x.index];
    // A maximum does not depend on the order in which it is taken, nor on a NaN's place: sums could not be divided so.
    if (is_divided(NodeId{i})) {
      const NodeId whole = node.operands[0];
      const int rank = graph->type(whole).rank(), kept = rank - rows.row_axes(given[NodeId{i}].operands[0]);
      AxisList of_row;
      for (int a = kept; a < rank; ++a) of_row.push_back(a);
      build.origin = node.origin;
      node.operands[0] = build.reduce(node.as<ReduceAttr>().fn, whole, of_row);
      node.attr = ReduceAttr{node.as<ReduceAttr>().fn, AxisList::range(kept)};
    }
    at[i] = build.append(std::move(node));
  }
  for_each_root(*graph, [&](NodeId& id) { id = at[id.index]; });
  return {std::move(graph), std::move(at)};
}

}  // namespace einc
