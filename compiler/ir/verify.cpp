// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/verify.h"

#include "compiler/ir/node_check.h"

namespace einc {
namespace {

class Roots {
 public:
  Roots(const Graph& graph, std::vector<std::string>& problems) : graph_(graph), problems_(problems) {}

  void check() {
    for (const Output& output : graph_.outputs) exists("output " + output.name.str(), output.node);
    std::vector<bool> updated(graph_.size(), false);
    for (const Update& update : graph_.updates) {
      if (!exists("update target", update.target) || !exists("update value", update.value)) continue;
      const Op op = graph_[update.target].op;
      if (op != Op::param && op != Op::state) say("update of %{}, which is no param or state", update.target.index);
      if (updated[update.target.index]) say("%{} is updated twice", update.target.index);
      updated[update.target.index] = true;
      same_sizes("update", update.target, update.value);
    }
    if (graph_.loss.valid() && exists("loss", graph_.loss) && graph_.type(graph_.loss).rank() != 0) say("the loss has axes");
    const bool of_device = graph_.mesh.of_device;
    for (const Update& gradient : graph_.gradients) {
      if (!exists("gradient target", gradient.target)) continue;
      if (graph_[gradient.target].op != Op::param) say("gradient of %{}, which is no param", gradient.target.index);
      // A mesh's device may have another part of a gradient than of its param.
      if (gradient.value.valid() && exists("gradient", gradient.value) && !of_device)
        same_sizes("gradient", gradient.target, gradient.value);
    }
  }

 private:
  template <class... T>
  void say(fmt::format_string<T...> format, T&&... values) {
    problems_.push_back(fmt::format(format, std::forward<T>(values)...));
  }

  bool exists(const std::string& what, NodeId id) {
    if (id.index < graph_.size()) return true;
    say("{}: node %{} does not exist", what, id.index);
    return false;
  }

  void same_sizes(std::string_view what, NodeId a, NodeId b) {
    if (!graph_.type(a).same_sizes(graph_.type(b)))
      say("{} of %{} {} by %{} {}", what, a.index, to_string(graph_.type(a)), b.index, to_string(graph_.type(b)));
  }

  const Graph& graph_;
  std::vector<std::string>& problems_;
};

void check_loops(const Graph& graph, std::vector<std::string>& problems) {
  if (graph.loop_contexts.empty()) {
    problems.push_back("there is no loop context 0");
    return;
  }
  for (size_t i = 1; i < graph.loop_contexts.size(); ++i) {
    const LoopContext& context = graph.loop_contexts[i];
    if (context.parent >= i) problems.push_back(fmt::format("loop context {} comes before its parent", i));
    if (context.loop >= graph.loops.size()) problems.push_back(fmt::format("loop context {} is of no loop", i));
  }
}

}  // namespace

std::vector<std::string> verify(const Graph& graph) {
  std::vector<std::string> problems;
  check_loops(graph, problems);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    const std::string problem = check_node(graph, NodeId{i});
    if (!problem.empty()) problems.push_back(fmt::format("%{} {}: {}", i, to_string(node.op), problem));
    if (node.origin.loop_context >= graph.loop_contexts.size()) problems.push_back(fmt::format("%{}: no such loop context", i));
  }
  Roots(graph, problems).check();
  return problems;
}

}  // namespace einc
