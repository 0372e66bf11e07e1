// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/node_classes.h"

#include <algorithm>

#include "compiler/ir/attr_hash.h"

namespace einc {
namespace {

// What two nodes of one class agree in beside their operands' and their own shapes.
size_t hash_of_work(const Node& node) {
  if (names_only(node.op)) return 0;
  return node.op == Op::random ? static_cast<size_t>(node.as<RandomAttr>().kind) : hash_of(node.attr);
}

// Draws of two streams are one kernel, which is told the stream's key when it runs. All else that a draw depends on is in its code.
bool same_draws(RandomAttr a, const RandomAttr& b) {
  a.stream = b.stream;
  return a == b;
}

bool is_where_read(const BoundGraph& graph, NodeId id) { return !graph.where_read.empty() && graph.where_read[id.index]; }

}  // namespace

bool NodeClasses::is_same(const BoundGraph& graph, NodeId id, const Work& work) {
  const Node& node = graph[id];
  if (node.op != work.op || node.type.dtype != work.dtype || is_where_read(graph, id) != work.where_read) return false;
  if (node.operands.size() + 1 != work.values.size() || !graph.lies_as(id, work.values[0])) return false;
  for (size_t k = 0; k < node.operands.size(); ++k)
    if (!graph.lies_as(node.operands[k], work.values[k + 1])) return false;
  if (names_only(node.op)) return true;
  return node.op == Op::random ? same_draws(node.as<RandomAttr>(), std::get<RandomAttr>(work.attr)) : node.attr == work.attr;
}

uint32_t NodeClasses::class_of(const BoundGraph& graph, NodeId id) {
  const Node& node = graph[id];
  size_t hash = mix(mix(static_cast<size_t>(node.op), static_cast<size_t>(node.type.dtype)), hash_of_work(node));
  const auto mix_shape = [&](NodeId x) {
    for (int64_t extent : graph.shape(x)) hash = mix(hash, static_cast<size_t>(extent));
  };
  mix_shape(id);
  for (NodeId x : node.operands) mix_shape(x);
  std::vector<uint32_t>& alike = by_hash_[hash];
  const auto same = std::ranges::find_if(alike, [&](uint32_t other) { return is_same(graph, id, works_[other]); });
  if (same != alike.end()) return *same;
  alike.push_back(static_cast<uint32_t>(works_.size()));
  Work& work = works_.emplace_back(Work{node.op, node.type.dtype, node.attr, is_where_read(graph, id), {graph.layout(id)}});
  for (const NodeId x : node.operands) work.values.push_back(graph.layout(x));
  return alike.back();
}

}  // namespace einc
