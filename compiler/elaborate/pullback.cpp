// SPDX-License-Identifier: Apache-2.0
// Pullback::of_outputs: the program's outputs pulled back to its inputs and params, for the autograd of another library. The gradient of
// one scalar, the sum over outputs y of cotangent.y * y, is all of their vector-Jacobian products in one reverse sweep; the scalar itself
// is nobody's output, so its own work is dropped.
#include "compiler/autodiff/differentiate.h"
#include "compiler/elaborate/elaborator.h"
#include "runtime/base/pullback_names.h"

namespace einc {
namespace {

NodeId sum_of_all(Builder& build, NodeId x) {
  const int rank = build.type(x).rank();
  return rank == 0 ? x : build.reduce(ReduceFn::sum, x, AxisList::range(rank));
}

// What gradients are asked of: floating inputs and trained params, by their names.
std::vector<Output> differentiable_sources(const Graph& graph) {
  std::vector<Output> sources;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!is_floating(node.type.dtype)) continue;
    if (node.op == Op::input) sources.push_back({node.as<InputAttr>().name, NodeId{i}});
    if (node.op == Op::param && !node.as<ParamAttr>().frozen) sources.push_back({node.as<ParamAttr>().path, NodeId{i}});
  }
  return sources;
}

// New values of the program's states as outputs: a backward reads the old ones after the outputs are there.
void give_out_states(Graph& graph) {
  const auto is_own = [&](const Update& update) {
    const auto* state = std::get_if<StateAttr>(&graph[update.target].attr);
    return state != nullptr && state->role == StateRole::user;
  };
  for (const Update& update : graph.updates)
    if (is_own(update))
      graph.outputs.push_back({Name(std::string(kNextState) + graph[update.target].as<StateAttr>().path.str()), update.value});
  std::erase_if(graph.updates, is_own);
}

}  // namespace

void Elaborator::add_pullback() {
  const std::vector<Output> sources = differentiable_sources(graph_), outputs = graph_.outputs;
  give_out_states(graph_);
  build_.origin = {};
  NodeId total;
  for (const Output& output : outputs) {
    const Type type = build_.type(output.node);
    if (!is_floating(type.dtype)) continue;
    const NodeId cotangent = build_.input(Name(std::string(kCotangent) + output.name.str()), type);
    const NodeId term = sum_of_all(build_, build_.map(MapFn::mul, {cotangent, output.node}));
    total = total.valid() ? build_.map(MapFn::add, {total, term}) : term;
  }
  std::vector<NodeId> wrt, gradients(sources.size());
  for (const Output& source : sources) wrt.push_back(source.node);
  if (total.valid()) gradients = differentiate(build_, total, wrt, {{}, &custom_gradients_, nullptr});
  for (size_t i = 0; i < sources.size(); ++i)
    graph_.outputs.push_back(
        {Name(std::string(kPulledBack) + sources[i].name.str()), gradients[i].valid() ? gradients[i] : zeros_like(wrt[i])});
}

}  // namespace einc
