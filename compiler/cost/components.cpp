// SPDX-License-Identifier: Apache-2.0
#include "compiler/cost/components.h"

#include "compiler/cost/memory.h"
#include "compiler/cost/sum.h"

namespace einc {
namespace {

// What can be reached from a node (towards its users) or reaches it (from its operands) without passing a contraction.
struct Flow {
  bool to_softmax = false, to_attention = false, to_end = false;
  bool from_scores = false, from_mix = false;
};

class Finder {
 public:
  Finder(const Graph& graph, const std::vector<FlopCost>& costs) : graph_(graph), costs_(costs), flow_(graph.size()), kind_(graph.size()) {}

  std::optional<ComponentCosts> run() {
    find_softmaxes();
    find_attention();
    if (!found_) return std::nullopt;
    find_users();
    return sum();
  }

 private:
  bool forward(uint32_t i) const { return graph_.nodes[i].origin.phase == Phase::forward; }
  bool has_weight(const Node& node) const {
    return param_behind(graph_, node.operands[0]).valid() || param_behind(graph_, node.operands[1]).valid();
  }
  static bool is_exp(const Node& node) { return node.op == Op::softmax || is_map(node, MapFn::exp); }

  // A scalar that scales a tensor (fp8) carries no activation.
  bool carries(const Node& user, NodeId operand) const { return user.type.rank() == 0 || graph_.type(operand).rank() > 0; }

  // Towards the operands: what leads to an exponential.
  void find_softmaxes() {
    for (uint32_t i = graph_.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      if (!forward(i) || node.op == Op::contract) continue;
      if (!is_exp(node) && !flow_[i].to_softmax) continue;
      for (NodeId x : node.operands)
        if (carries(node, x)) flow_[x.index].to_softmax = true;
    }
  }

  // Towards the users: scores are the contractions of two activations that lead to a softmax, mixes contract what comes from scores.
  void find_attention() {
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!forward(i)) continue;
      bool from_scores = false, from_mix = false;
      for (NodeId x : node.operands) {
        if (!carries(node, x)) continue;
        from_scores = from_scores || flow_[x.index].from_scores;
        from_mix = from_mix || flow_[x.index].from_mix;
      }
      if (node.op != Op::contract) {
        flow_[i].from_scores = from_scores;
        flow_[i].from_mix = from_mix;
        continue;
      }
      if (has_weight(node)) {
        if (from_mix && !from_scores) kind_[i] = Component::projection;
        continue;
      }
      if (from_scores) {
        kind_[i] = Component::value_mix;
        flow_[i].from_mix = found_ = true;
      } else if (flow_[i].to_softmax) {
        kind_[i] = Component::scores;
        flow_[i].from_scores = true;
      }
    }
  }

  // Towards the operands again: what leads to attention, and to the loss or an output.
  void find_users() {
    for (const Output& output : graph_.outputs)
      if (forward(output.node.index)) flow_[output.node.index].to_end = true;
    if (graph_.loss.valid()) flow_[graph_.loss.index].to_end = true;
    for (uint32_t i = graph_.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      if (!forward(i)) continue;
      const bool attention = kind_[i] == Component::scores || kind_[i] == Component::value_mix;
      for (NodeId x : node.operands) {
        if (!carries(node, x)) continue;
        Flow& f = flow_[x.index];
        f.to_attention = f.to_attention || attention || (node.op != Op::contract && flow_[i].to_attention);
        f.to_end = f.to_end || (node.op != Op::contract && flow_[i].to_end);
      }
    }
  }

  Component kind_of_weight(uint32_t i) const {
    if (flow_[i].to_attention) return Component::qkv;
    return flow_[i].to_end ? Component::de_embed : Component::feed_forward;
  }

  ComponentCosts sum() {
    LoopSum totals(graph_, 2 * kComponents);
    std::vector<bool> counted(graph_.size(), false);
    auto add_param = [&](Component component, NodeId operand) {
      const NodeId param = param_behind(graph_, operand);
      if (!param.valid() || counted[param.index]) return;
      counted[param.index] = true;
      totals.add(static_cast<int>(component), graph_[param].origin.loop_context, graph_.type(param).count());
    };
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!forward(i)) continue;
      if (node.op == Op::gather) add_param(Component::embed, node.operands[0]);
      if (node.op != Op::contract) continue;
      if (!kind_[i] && !has_weight(node)) continue;
      const Component component = kind_[i] ? *kind_[i] : kind_of_weight(i);
      for (NodeId x : node.operands) add_param(component, x);
      totals.add(kComponents + static_cast<int>(component), node.origin.loop_context, costs_[i].flops);
    }
    const std::vector<Poly> flat = totals.totals();
    ComponentCosts costs;
    for (size_t c = 0; c < kComponents; ++c) {
      costs.parameters[c] = flat[c];
      costs.flops[c] = flat[kComponents + c];
    }
    return costs;
  }

  const Graph& graph_;
  const std::vector<FlopCost>& costs_;
  std::vector<Flow> flow_;
  std::vector<std::optional<Component>> kind_;
  bool found_ = false;
};

}  // namespace

std::string_view to_string(Component component) {
  switch (component) {
    case Component::embed:
      return "embed";
    case Component::qkv:
      return "qkv";
    case Component::scores:
      return "scores";
    case Component::value_mix:
      return "value mix";
    case Component::projection:
      return "projection";
    case Component::feed_forward:
      return "feed-forward";
    case Component::de_embed:
      return "de-embed";
  }
  return "";
}

std::optional<ComponentCosts> transformer_components(const Graph& graph, const std::vector<FlopCost>& costs) {
  return Finder(graph, costs).run();
}

}  // namespace einc
