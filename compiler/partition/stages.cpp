// SPDX-License-Identifier: Apache-2.0
// A node's stage is the number of collectives on the longest way to it; the optimizer's come after all of the backward, so that no update
// waits for a sum while there is other work. Constants and what follows from them are made again in each stage: they cost less than memory
// that is kept. A shift is in the stage of what stands before it in the graph, at least. In a stage stands first what a collective waits
// for whose result the next one reads.
#include "compiler/partition/stages.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/build.h"

namespace einc {
namespace {

bool is_declaration(Op op) { return op == Op::input || op == Op::param || op == Op::state; }

class Cutter {
 public:
  Cutter(const Graph& graph, std::span<const NodeId> results) : graph_(graph), level_(graph.size(), 0) {
    find_live(results);
    find_repeated();
    find_levels();
    find_exports(results);
  }

  DeviceStages run() {
    for (uint32_t level = 0; level < static_cast<uint32_t>(stages_.size()); ++level) fill(level);
    return {std::move(stages_), std::move(collectives_)};
  }

 private:
  void find_live(std::span<const NodeId> results) {
    live_.resize(graph_.size(), false);
    for (const NodeId id : results) live_[id.index] = true;
    for (uint32_t i = graph_.size(); i-- > 0;)
      if (live_[i])
        for (const NodeId operand : graph_.nodes[i].operands) live_[operand.index] = true;
  }

  void find_repeated() {
    for (const Node& node : graph_.nodes) {
      const bool source = node.op == Op::constant || node.op == Op::iota;
      const bool follows = !node.operands.empty() && !is_collective(node.op) && node.op != Op::scan && node.op != Op::scan_result &&
                           std::ranges::all_of(node.operands, [&](NodeId x) { return repeated_[x.index]; });
      repeated_.push_back(source || follows);
    }
  }

  void find_levels() {
    uint32_t backward = 0, last = 0, beside = 0;
    for (const bool optimizer : {false, true})
      for (uint32_t i = 0; i < graph_.size(); ++i) {
        const Node& node = graph_.nodes[i];
        if (!live_[i]) continue;
        if (optimizer && node.origin.phase == Phase::optimizer && is_computed(i)) level_[i] = backward;
        for (const NodeId operand : node.operands)
          level_[i] = std::max(level_[i], level_[operand.index] + (is_collective(graph_[operand].op) ? 1 : 0));
        // A block goes round beside the launches that stand before it: keys do not come back while the forward still goes on.
        if (node.op == Op::shift) level_[i] = std::max(level_[i], beside);
        if (is_computed(i) && node.origin.phase != Phase::optimizer) beside = level_[i];
        if (node.origin.phase != Phase::optimizer) backward = std::max(backward, level_[i]);
        last = std::max(last, level_[i]);
      }
    stages_.resize(last + 1);
  }

  // Nodes of the stage that lead to a collective whose result the next one reads: launches of the others then go on beside it.
  std::vector<bool> wanted_first(uint32_t level) const {
    std::vector<bool> wanted(graph_.size(), false);
    for (uint32_t i = graph_.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      if (!live_[i]) continue;
      const bool reads = wanted[i] && level_[i] == level;
      const bool reader = is_computed(i) && level_[i] == level + 1 && node.origin.phase != Phase::optimizer;
      for (const NodeId operand : node.operands)
        if (reads || (reader && is_collective(graph_[operand].op) && level_[operand.index] == level)) wanted[operand.index] = true;
    }
    return wanted;
  }

  bool is_computed(uint32_t i) const {
    return live_[i] && !repeated_[i] && !is_declaration(graph_.nodes[i].op) && !is_collective(graph_.nodes[i].op);
  }

  // The iterations' results are no values: those of scan_result are.
  void find_exports(std::span<const NodeId> results) {
    std::vector<bool> exported(graph_.size(), false);
    const auto need = [&](NodeId id) {
      if (!is_declaration(graph_[id].op) && !is_collective(graph_[id].op)) exported[id.index] = true;
    };
    for (const NodeId id : results) need(id);
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!live_[i]) continue;
      for (const NodeId operand : node.operands)
        if (is_collective(node.op) || (!repeated_[operand.index] && level_[operand.index] < level_[i])) need(operand);
      if (is_collective(node.op)) collectives_.push_back(NodeId{i});
    }
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (exported[i]) stages_[repeated_[i] ? 0 : level_[i]].makes.push_back(NodeId{i});
  }

  // ---- one stage

  void fill(uint32_t level) {
    DeviceStage& stage = stages_[level];
    Graph& g = stage.graph;
    g.name = graph_.name, g.dims = graph_.dims, g.policy = graph_.policy, g.loops = graph_.loops;
    g.loop_contexts = graph_.loop_contexts, g.chosen_by = graph_.chosen_by;
    at_.assign(graph_.size(), NodeId{});
    const std::vector<bool> first = wanted_first(level);
    for (const bool now : {true, false})
      for (uint32_t i = 0; i < graph_.size(); ++i)
        if (first[i] == now && is_computed(i) && level_[i] == level) place(stage, NodeId{i});
    for (const NodeId id : stage.makes) g.outputs.push_back({Name(value_name(id)), place(stage, id)});
  }

  NodeId place(DeviceStage& stage, NodeId id) {
    if (at_[id.index].valid()) return at_[id.index];
    const Node& source = graph_[id];
    Node node = source;
    const bool here = is_computed(id.index) && &stages_[level_[id.index]] == &stage;
    if (here || repeated_[id.index]) {
      for (NodeId& operand : node.operands) operand = place(stage, operand);
    } else if (!is_declaration(source.op)) {
      node.op = Op::input;
      node.operands.clear();
      node.attr = InputAttr{Name(value_name(id))};
      stage.reads.push_back(id);
    }
    return at_[id.index] = Builder(stage.graph).append(std::move(node));
  }

  const Graph& graph_;
  std::vector<bool> live_, repeated_;
  std::vector<uint32_t> level_;
  std::vector<DeviceStage> stages_;
  std::vector<NodeId> collectives_;
  std::vector<NodeId> at_;
};

}  // namespace

bool is_collective(Op op) {
  return op == Op::all_reduce || op == Op::reduce_scatter || op == Op::all_gather || op == Op::all_to_all || op == Op::shift;
}

std::string value_name(NodeId id) { return fmt::format("{}{}", kValuePrefix, id.index); }

std::vector<NodeId> results_of(const Localized& local) {
  std::vector<NodeId> results;
  for (const auto* list : {&local.outputs, &local.updates, &local.gradients})
    for (const DeviceValue& value : *list)
      if (value.node.valid()) results.push_back(value.node);
  if (local.loss.node.valid()) results.push_back(local.loss.node);
  return results;
}

DeviceStages cut_at_collectives(const Graph& graph, std::span<const NodeId> results) { return Cutter(graph, results).run(); }

}  // namespace einc
