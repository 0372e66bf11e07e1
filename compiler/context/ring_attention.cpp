// SPDX-License-Identifier: Apache-2.0
// All but the attentions is copied node by node; what reads one's result has it written before.
#include "compiler/context/ring_attention.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compiler/context/ring_writer.h"
#include "compiler/ir/remap.h"

namespace einc {
namespace {

class RingCopier {
 public:
  RingCopier(const Graph& graph, const std::vector<SplitAttention>& found, RingOrder order, const Bindings& given)
      : graph_(graph), order_(order), free_(free_nodes(graph)), build_(out_.graph) {
    for (const SplitAttention& split : found) {
      if (!graph.mesh.keys.contains(split.mesh_axis)) continue;
      auto form = ring_form(graph, split, given);
      if (auto* refusal = std::get_if<FusionRefusal>(&form))
        out_.gathered.push_back(std::move(*refusal));
      else
        forms_.push_back(std::move(std::get<RingForm>(form)));
    }
  }

  RingGraph run() {
    Graph& g = out_.graph;
    g = graph_;
    g.nodes.clear();
    out_.at.assign(graph_.size(), NodeId{});
    writers_.reserve(forms_.size());
    for (const RingForm& form : forms_) writers_.emplace_back(graph_, form, free_, order_, build_, [this](NodeId id) { return whole(id); });
    for (uint32_t i = 0; i < forms_.size(); ++i) claim(i);
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (is_source(graph_.nodes[i].op)) whole(NodeId{i});
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (stays_whole(i)) whole(NodeId{i});
    for_each_root(g, [&](NodeId& id) {
      if (id.valid()) id = whole(id);
    });
    return std::move(out_);
  }

 private:
  struct Source {
    uint32_t form = 0;
    Phase phase = Phase::forward;
  };

  void claim(uint32_t form) {
    const RingForm& f = forms_[form];
    for (const NodeId id : {f.max, f.sum}) source_[id] = {form, Phase::forward};
    for (const NodeId id : f.forward) source_[id] = {form, Phase::forward};
    for (const NodeId id : f.backward) source_[id] = {form, Phase::backward};
  }

  // Needed, and not of an attention: in the order of the graph, so that nothing is copied at a great depth.
  bool stays_whole(uint32_t i) {
    if (needed_.empty()) {
      needed_.assign(graph_.size(), false);
      for_each_root(graph_, [&](NodeId id) {
        if (id.valid()) needed_[id.index] = true;
      });
      for (const RingForm& form : forms_)
        for (const NodeId id : form.split->attention.pairs) inside_.insert(id);
      for (uint32_t n = graph_.size(); n-- > 0;)
        if (needed_[n])
          for (const NodeId operand : graph_.nodes[n].operands) needed_[operand.index] = true;
    }
    return needed_[i] && !inside_.contains(NodeId{i}) && !source_.contains(NodeId{i});
  }

  NodeId whole(NodeId id) {
    NodeId& at = out_.at[id.index];
    if (at.valid()) return at;
    if (const auto source = source_.find(id); source != source_.end()) {
      RingWriter& writer = writers_[source->second.form];
      const auto made = source->second.phase == Phase::forward ? writer.forward() : writer.backward();
      for (const auto& [given, node] : made) out_.at[given.index] = node;
      return at;
    }
    Node node = graph_[id];
    for (NodeId& operand : node.operands) operand = whole(operand);
    return at = build_.append(std::move(node));
  }

  const Graph& graph_;
  const RingOrder order_;
  const std::vector<bool> free_;
  RingGraph out_;
  Builder build_;
  std::vector<RingForm> forms_;
  std::vector<RingWriter> writers_;
  std::map<NodeId, Source> source_;  // what attentions make
  std::set<NodeId> inside_;          // values per row and key
  std::vector<bool> needed_;
};

}  // namespace

std::vector<bool> go_round(const Graph& graph, const std::vector<SplitAttention>& found, const Bindings& given) {
  std::vector<bool> round;
  for (const SplitAttention& split : found)
    round.push_back(graph.mesh.keys.contains(split.mesh_axis) && std::holds_alternative<RingForm>(ring_form(graph, split, given)));
  return round;
}

RingGraph ring_attention(const Graph& graph, const std::vector<SplitAttention>& found, RingOrder order, const Bindings& given) {
  return RingCopier(graph, found, order, given).run();
}

}  // namespace einc
