// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/saved_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <unordered_set>

#include "runtime/base/printable.h"

namespace einc {
namespace {

std::vector<bool> read_by_results(const Graph& graph) {
  std::vector<bool> read(graph.size(), false);
  for (const Output& output : graph.outputs) read[output.node.index] = true;
  if (graph.loss.valid()) read[graph.loss.index] = true;
  for (uint32_t i = graph.size(); i-- > 0;)
    if (read[i])
      for (NodeId operand : graph.nodes[i].operands) read[operand.index] = true;
  return read;
}

}  // namespace

std::vector<std::string> states_saved_with_weights(const Graph& graph) {
  std::unordered_set<Name> of_inputs;
  for (const Node& node : graph.nodes)
    if (node.op == Op::input)
      for (const Axis& axis : node.type.axes)
        if (!axis.name.empty()) of_inputs.insert(axis.name);
  const std::vector<bool> read = read_by_results(graph);
  std::vector<std::string> states;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op != Op::state || node.as<StateAttr>().role != StateRole::user || !read[i]) continue;
    if (std::ranges::none_of(node.type.axes, [&](const Axis& axis) { return of_inputs.contains(axis.name); }))
      states.push_back(node.as<StateAttr>().path.str());
  }
  return states;
}

void note_missing_states(const Graph& graph, const std::function<bool(const std::string& state)>& is_held) {
  std::vector<std::string> missing = states_saved_with_weights(graph);
  std::erase_if(missing, is_held);
  if (missing.empty()) return;
  fmt::print(stderr, "einc: note: {} of the program's states are not among the weights and keep their initial values: {}{}\n",
             missing.size(), printable(missing.front()), missing.size() > 1 ? ", ..." : "");
}

}  // namespace einc
