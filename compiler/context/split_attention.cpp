// SPDX-License-Identifier: Apache-2.0
#include "compiler/context/split_attention.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/ir/remap.h"

namespace einc {
namespace {

// Where the mesh axis that splits rows and keys of a contraction lies.
struct Conflict {
  int mesh_axis = 0, row = 0, key = 0;  // axes of the result
};

std::optional<Conflict> conflict_at(const Graph& graph, NodeId id, const std::vector<Layout>& layouts) {
  const Node& node = graph[id];
  const ContractAttr& attr = node.as<ContractAttr>();
  const Layout &left = layouts[node.operands[0].index], &right = layouts[node.operands[1].index];
  for (int m = 0; m < static_cast<int>(graph.mesh.axes.size()); ++m) {
    const int l = left.axis_on(m), r = right.axis_on(m);
    if (l < 0 || r < 0) continue;
    const int of_left = attr.left[l], of_right = attr.right[r], rank = node.type.rank();
    if (of_left != of_right && of_left < rank && of_right < rank) return Conflict{m, of_left, of_right};
  }
  return std::nullopt;
}

std::vector<bool> root_nodes(const Graph& graph) {
  std::vector<bool> roots(graph.size(), false);
  for_each_root(graph, [&](NodeId id) {
    if (id.valid()) roots[id.index] = true;
  });
  return roots;
}

}  // namespace

std::vector<int> axes_of_labels(const Node& node, uint32_t index, const Factors& factors, const FoundAttention& found) {
  std::vector<int> axes(factors.labels.size(), -1);
  const auto read = [&](uint32_t of, const std::vector<int>& labels) {
    const auto known = found.axes.find(of);
    if (known == found.axes.end()) return;
    for (size_t i = 0; i < labels.size(); ++i)
      if (labels[i] >= 0) axes[static_cast<size_t>(labels[i])] = known->second[i];
  };
  for (size_t k = 0; k < node.operands.size(); ++k) read(node.operands[k].index, factors.operands[k]);
  read(index, factors.result);
  return axes;
}

bool compares_order(const Node& node) {
  if (node.op != Op::map) return false;
  const MapFn fn = node.as<MapAttr>().fn;
  return fn == MapFn::less || fn == MapFn::less_equal || fn == MapFn::greater || fn == MapFn::greater_equal;
}

std::vector<bool> free_nodes(const Graph& graph) {
  std::vector<bool> free(graph.size());
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    const bool simple =
        node.op == Op::constant || node.op == Op::iota || node.op == Op::map || node.op == Op::cast || kind_of(node.op) == OpKind::view;
    free[i] = simple && std::ranges::all_of(node.operands, [&](NodeId x) { return free[x.index]; });
  }
  return free;
}

BoundGraph bound_by_roots(const Graph& graph, const Bindings& given) {
  std::vector<bool> live = root_nodes(graph);
  for (uint32_t i = graph.size(); i-- > 0;)
    if (live[i])
      for (const NodeId operand : graph.nodes[i].operands) live[operand.index] = true;
  return bind_graph(graph, given, std::move(live));
}

std::vector<SplitAttention> split_attention(const Graph& graph, const Partitioned& first, const Bindings& given) {
  std::vector<std::pair<NodeId, Conflict>> conflicts;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (const Node& node = graph.nodes[i]; node.op == Op::contract && node.origin.phase == Phase::forward)
      if (const auto conflict = conflict_at(graph, NodeId{i}, first.layouts)) conflicts.emplace_back(i, *conflict);
  const BindResult dims = graph.dims.bind(given);
  if (conflicts.empty() || !dims.ok() || !dims.unset.empty()) return {};
  std::vector<SplitAttention> out;
  for (FoundAttention& found : find_attention(bound_by_roots(graph, given), root_nodes(graph), free_nodes(graph)).found) {
    const auto at = std::ranges::find(conflicts, found.scores, &std::pair<NodeId, Conflict>::first);
    if (at == conflicts.end() || found.is_lone_backward()) continue;
    const auto& [m, a, b] = at->second;
    if (found.key != a && found.key != b) continue;
    const Node& scores = graph[found.scores];
    const bool keys_left = scores.as<ContractAttr>().left.contains(found.key);
    const Layout &rows = first.layouts[scores.operands[keys_left ? 1 : 0].index],
                 &keys = first.layouts[scores.operands[keys_left ? 0 : 1].index];
    const int row = found.key == a ? b : a;
    out.push_back({std::move(found), m, row, rows.over(rows.axis_on(m)), keys.over(keys.axis_on(m))});
  }
  return out;
}

PartitionHints rows_in_place(const Graph& graph, const std::vector<SplitAttention>& found) {
  PartitionHints hints;
  for (const SplitAttention& split : found) {
    const FoundAttention& attention = split.attention;
    for (uint32_t i = attention.scores.index; i < graph.size(); ++i) {
      const Node& node = graph.nodes[i];
      const bool reads = std::ranges::any_of(node.operands, [&](NodeId x) { return attention.axes.contains(x.index); });
      if (!reads && !attention.axes.contains(i)) continue;
      const std::vector<int> axes = axes_of_labels(node, i, factors_of(graph, NodeId{i}), attention);
      std::vector<bool>& yielding = hints.yielding[i];
      yielding.resize(axes.size(), false);
      for (size_t label = 0; label < axes.size(); ++label) yielding[label] = yielding[label] || axes[label] == attention.key;
    }
    // Gradients of keys and values lie as these do.
    for (const NodeId id : attention.backward.results) {
      const Factors factors = factors_of(graph, id);
      const std::vector<int> axes = axes_of_labels(graph[id], id.index, factors, attention);
      Layout wish(graph.type(id).rank());
      for (int i = 0; i < graph.type(id).rank(); ++i)
        if (axes[static_cast<size_t>(factors.result[static_cast<size_t>(i)])] == attention.key) wish.over(i) = split.key_over;
      hints.wishes.emplace_back(id, std::move(wish));
    }
  }
  return hints;
}

}  // namespace einc
