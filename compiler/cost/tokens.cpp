// SPDX-License-Identifier: Apache-2.0
#include "compiler/cost/tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/cost/layout.h"

namespace einc {
namespace {

// The node behind views and casts.
NodeId strip(const Graph& graph, NodeId id) {
  for (;;) {
    id = view_base(graph, id);
    if (graph[id].op != Op::cast) return id;
    id = graph[id].operands[0];
  }
}

// log(sum(exp(...))), with the maximum added back.
bool is_logsumexp(const Graph& graph, NodeId id) {
  const Node& node = graph[strip(graph, id)];
  if (node.op == Op::logsumexp) return true;
  if (!is_map(node, MapFn::add)) return false;
  for (NodeId x : node.operands) {
    const Node& log = graph[strip(graph, x)];
    if (!is_map(log, MapFn::log)) continue;
    const Node& sum = graph[strip(graph, log.operands[0])];
    if (is_reduce(sum, ReduceFn::sum) && is_map(graph[strip(graph, sum.operands[0])], MapFn::exp)) return true;
  }
  return false;
}

// The logit that a target picks; with smoothed labels a share of it, beside one of the mean.
bool picks_logit(const Graph& graph, NodeId id) {
  const Node& node = graph[strip(graph, id)];
  if (node.op == Op::gather) return is_floating(node.type.dtype);
  if (!is_map(node, MapFn::add) && !is_map(node, MapFn::mul)) return false;
  return picks_logit(graph, node.operands[0]) || picks_logit(graph, node.operands[1]);
}

// logsumexp minus the logit that the target picks.
bool is_cross_entropy(const Graph& graph, const Node& node) {
  if (node.origin.phase != Phase::forward || !is_map(node, MapFn::sub)) return false;
  return is_logsumexp(graph, node.operands[0]) && picks_logit(graph, node.operands[1]);
}

// sum(x) * (1/n) or sum(x) / n: the reduction.
const Node* outermost_mean(const Graph& graph, NodeId loss) {
  const Node& node = graph[strip(graph, loss)];
  if (!is_map(node, MapFn::mul) && !is_map(node, MapFn::div)) return nullptr;
  for (NodeId x : node.operands) {
    const Node& sum = graph[strip(graph, x)];
    if (is_reduce(sum, ReduceFn::sum)) return &sum;
  }
  return nullptr;
}

// A row of a param for each integer of an input.
bool looks_up_input(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    if (node.op != Op::gather) return false;
    const Node &table = graph[strip(graph, node.operands[0])], &ids = graph[strip(graph, node.operands[1])];
    return table.op == Op::param && ids.op == Op::input;
  });
}

}  // namespace

TokenCount tokens_per_step(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (is_cross_entropy(graph, node))
      return {node.type.count(), "elements of the first cross-entropy", node.type.rank() > 1 || looks_up_input(graph)};
  if (!graph.loss.valid()) return {Poly(1), "no loss"};
  if (const Node* sum = outermost_mean(graph, graph.loss)) {
    const Type& type = graph.type(sum->operands[0]);
    Poly tokens(1);
    for (int axis : sum->as<ReduceAttr>().axes) tokens *= type.axis(axis).size;
    return {tokens, "axes of the loss' outermost mean"};
  }
  return {Poly(1), "the loss is no mean"};
}

}  // namespace einc
