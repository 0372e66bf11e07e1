// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/drawn_parts.h"

namespace einc {

bool is_drawn_part(const BoundGraph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.op != Op::gather || graph.count(node.operands[1]) != 1) return false;
  NodeId table = node.operands[0];
  while (kind_of(graph[table].op) == OpKind::view) table = graph[table].operands[0];
  return graph[table].op == Op::random || is_drawn_part(graph, table);
}

std::vector<bool> find_taken_in_parts(const BoundGraph& graph, const std::vector<bool>& is_root) {
  // Readers before what they read. A view has no memory: it is read as its readers read it.
  std::vector<bool> in_parts(graph.graph.size(), false), otherwise = is_root;
  for (uint32_t i = graph.graph.size(); i-- > 0;) {
    const NodeId id{i};
    if (!graph.live[i]) continue;
    const bool passes = kind_of(graph[id].op) == OpKind::view, is_part = is_drawn_part(graph, id);
    for (size_t k = 0; k < graph[id].operands.size(); ++k) {
      const uint32_t x = graph[id].operands[k].index;
      if (passes) {
        in_parts[x] = in_parts[x] || in_parts[i];
        otherwise[x] = otherwise[x] || otherwise[i];
      } else {
        (is_part && k == 0 ? in_parts : otherwise)[x] = true;
      }
    }
  }
  for (uint32_t i = 0; i < graph.graph.size(); ++i) {
    const bool drawn = graph.live[i] && (graph.graph.nodes[i].op == Op::random || is_drawn_part(graph, NodeId{i}));
    in_parts[i] = in_parts[i] && drawn && !otherwise[i];
  }
  return in_parts;
}

}  // namespace einc
