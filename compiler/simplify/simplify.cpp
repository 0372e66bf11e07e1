// SPDX-License-Identifier: Apache-2.0
#include "compiler/simplify/simplify.h"

#include "compiler/ir/build.h"
#include "compiler/scan/each_body.h"
#include "compiler/scan/prune.h"
#include "compiler/simplify/common.h"
#include "compiler/simplify/dead.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/rewrite.h"

namespace einc {
namespace {

constexpr int kMaxRounds = 16;  // two or three in practice; each rule shrinks something

std::vector<std::vector<Axis>> output_axes(const Graph& graph) {
  std::vector<std::vector<Axis>> axes;
  for (const Output& output : graph.outputs) axes.push_back(graph.type(output.node).axes);
  return axes;
}

// Outputs keep the axis names that they were declared with.
void restore_output_names(Graph& graph, const std::vector<std::vector<Axis>>& axes) {
  Builder build(graph);
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    build.origin = graph[graph.outputs[i].node].origin;
    graph.outputs[i].node = build.rename(graph.outputs[i].node, axes[i]);
  }
}

// A gradient is called like what it is the gradient of.
void name_gradients(Graph& graph) {
  for (const Update& gradient : graph.gradients)
    if (kind_of(graph[gradient.value].op) == OpKind::compute) graph[gradient.value].type.axes = graph.type(gradient.target).axes;
}

}  // namespace

Graph simplify(Graph graph, Roots roots) {
  const std::vector<std::vector<Axis>> names = output_axes(graph);
  graph = remove_dead(expand(std::move(graph), roots), roots);
  // What a body hands on are updates, which an evaluation would drop.
  const Roots within = trains(roots) ? Roots::training : Roots::inference;
  for_each_body(graph, [&](Graph body) { return simplify(std::move(body), within); });
  for (int round = 0; round < kMaxRounds; ++round) {
    Rewritten rewritten = rewrite(std::move(graph));
    Merged merged = merge_common(std::move(rewritten.graph));
    Pruned pruned = prune_scans(remove_dead(std::move(merged.graph), roots));
    graph = std::move(pruned.graph);
    if (rewritten.count + merged.count + pruned.count == 0) break;
  }
  name_gradients(graph);
  restore_output_names(graph, names);
  return graph;
}

}  // namespace einc
