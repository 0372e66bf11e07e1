// SPDX-License-Identifier: Apache-2.0
// Kernels run in the order of their nodes where nothing else decides, so the nodes' order is that of the overlap: by levels, a node's being
// the number of collectives on the longest way to it. In a level stands first what a collective waits for whose result the next one reads:
// launches of the others go on beside it. The optimizer's come after all of the backward, so that no update waits for a sum while there is
// other work.
#include "compiler/partition/device_program.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "compiler/ir/build.h"
#include "compiler/partition/stage_meetings.h"

namespace einc {
namespace {

class Orderer {
 public:
  explicit Orderer(const Localized& local) : local_(local), graph_(local.graph), level_(graph_.size(), 0), at_(graph_.size()) {
    find_live();
    find_constant();
    find_sums();
    find_levels();
  }

  DeviceProgram run() {
    Graph& g = out_.graph;
    g.name = graph_.name, g.dims = graph_.dims, g.mesh = graph_.mesh, g.policy = graph_.policy, g.loops = graph_.loops;
    g.loop_contexts = graph_.loop_contexts, g.chosen_by = graph_.chosen_by;
    g.mesh.of_device = true;
    std::vector<bool> first(graph_.size(), false);
    for (uint32_t level = 0; level <= last_; ++level) {
      find_wanted_first(level, first);
      for (const bool now : {true, false})
        for (const uint32_t i : of_level_[level])
          if (is_computed(i) && first[i] == now) place(NodeId{i});
      for (const uint32_t i : of_level_[level])
        if (live_[i] && is_collective(graph_.nodes[i].op)) place(NodeId{i});
    }
    find_meetings();
    find_values();
    if (local_.stores == DeviceUpdates::in_place) store();
    return std::move(out_);
  }

 private:
  void find_live() {
    live_.resize(graph_.size(), false);
    for (const NodeId id : results_of(local_)) live_[id.index] = true;
    for (const DeviceValue& update : local_.updates) live_[update.node.index] = true;
    for (uint32_t i = graph_.size(); i-- > 0;)
      if (live_[i])
        for (const NodeId operand : graph_.nodes[i].operands) live_[operand.index] = true;
  }

  // What follows from constants alone stands where it is first read.
  void find_constant() {
    for (const Node& node : graph_.nodes) {
      const bool source = node.op == Op::constant || node.op == Op::iota;
      const bool follows = !node.operands.empty() && !is_collective(node.op) && node.op != Op::scan && node.op != Op::scan_result &&
                           std::ranges::all_of(node.operands, [&](NodeId x) { return constant_[x.index]; });
      constant_.push_back(source || follows);
    }
  }

  void find_sums() {
    sum_of_.resize(graph_.size());
    for (const Update& update : graph_.updates)
      if (holds_sum(graph_[update.target])) sum_of_[graph_[update.value].operands[1].index] = update.value;
  }

  void find_levels() {
    uint32_t backward = 0, beside = 0, behind_forward = 0;
    for (const bool optimizer : {false, true})
      for (uint32_t i = 0; i < graph_.size(); ++i) {
        const Node& node = graph_.nodes[i];
        if (!live_[i]) continue;
        if (optimizer && node.origin.phase == Phase::optimizer && is_computed(i)) level_[i] = backward;
        for (const NodeId operand : node.operands)
          level_[i] = std::max(level_[i], level_[operand.index] + (is_collective(graph_[operand].op) ? 1 : 0));
        // A block goes round beside the launches that stand before it: keys do not come back while the forward still goes on.
        if (node.op == Op::shift && !is_microbatch_sum(node)) level_[i] = std::max(level_[i], beside);
        // What a stage's backward makes of the forward alone, it makes when it needs it: it has not to be kept.
        if (is_round_trip(node, graph_.mesh)) behind_forward = std::max(behind_forward, level_[i] + 1);
        if (is_computed(i) && node.origin.phase == Phase::backward) level_[i] = std::max(level_[i], behind_forward);
        if (is_computed(i) && node.origin.phase != Phase::optimizer) beside = level_[i];
        if (node.origin.phase != Phase::optimizer) backward = std::max(backward, level_[i]);
        last_ = std::max(last_, level_[i]);
      }
    of_level_.resize(last_ + 2);
    for (uint32_t i = 0; i < graph_.size(); ++i) of_level_[level_[i]].push_back(i);
  }

  bool is_computed(uint32_t i) const {
    return live_[i] && !constant_[i] && !is_declaration(graph_.nodes[i].op) && !is_collective(graph_.nodes[i].op);
  }

  // Whether node i waits for the collective at the level before its own.
  bool follows_at_once(uint32_t i, NodeId collective) const {
    return is_computed(i) && graph_.nodes[i].origin.phase != Phase::optimizer && level_[i] == level_[collective.index] + 1;
  }

  // Nodes of the level that lead to a collective whose result the next one reads. Of other levels' nodes `wanted` says nothing.
  void find_wanted_first(uint32_t level, std::vector<bool>& wanted) const {
    for (const uint32_t i : of_level_[level]) wanted[i] = false;
    for (const uint32_t i : of_level_[level + 1])
      for (const NodeId operand : graph_.nodes[i].operands)
        if (is_collective(graph_[operand].op) && level_[operand.index] == level && follows_at_once(i, operand))
          wanted[operand.index] = true;
    for (const uint32_t i : of_level_[level] | std::views::reverse)
      if (live_[i] && wanted[i])
        for (const NodeId operand : graph_.nodes[i].operands) wanted[operand.index] = true;
  }

  NodeId place(NodeId id) {
    if (at_[id.index].valid()) return at_[id.index];
    Node node = graph_[id];
    for (NodeId& operand : node.operands) operand = place(operand);
    at_[id.index] = Builder(out_.graph).append(std::move(node));
    // A term is added where it is made: what a product's kernel, or a library's epilogue, needs for both lies in memory then.
    if (const NodeId sum = sum_of_[id.index]; sum.valid()) place(sum);
    return at_[id.index];
  }

  void find_meetings() {
    std::vector<bool> urgent(graph_.size(), false);
    for (uint32_t i = 0; i < graph_.size(); ++i)
      for (const NodeId operand : graph_.nodes[i].operands)
        if (is_collective(graph_[operand].op) && follows_at_once(i, operand)) urgent[operand.index] = true;
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (live_[i] && is_collective(graph_.nodes[i].op)) out_.collectives.push_back({NodeId{i}, at_[i], level_[i], urgent[i]});
  }

  void find_values() {
    std::vector<bool> wanted(graph_.size(), false);
    for (const NodeId id : results_of(local_)) wanted[id.index] = true;
    for (const DeviceProgram::Meeting& c : out_.collectives) wanted[c.node.index] = wanted[graph_[c.node].operands[0].index] = true;
    for (const Update& update : graph_.updates)
      if (holds_sum(graph_[update.target])) {
        wanted[update.value.index] = false;  // it is where its state lies
        out_.graph.updates.push_back({place(update.target), place(update.value)});
      }
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      if (!wanted[i] || is_declaration(graph_.nodes[i].op)) continue;
      out_.values.push_back(NodeId{i});
      out_.graph.outputs.push_back({Name(value_name(NodeId{i})), place(NodeId{i})});
    }
  }

  // What is given is as it must be.
  bool is_made(NodeId id) const { return id.valid() && !is_declaration(graph_[id].op); }

  // As a whole program's step, so that it is guarded alike (fuse/guard_updates.h).
  void store() {
    Graph& g = out_.graph;
    for (const Update& update : graph_.updates) {
      NodeId& target = out_.targets.emplace_back();
      if (is_declaration(graph_[update.value].op) || holds_sum(graph_[update.target])) continue;
      target = place(update.target);
      g.updates.push_back({target, place(update.value)});
    }
    for (size_t i = 0; i < local_.gradients.size(); ++i)
      if (const NodeId gradient = local_.gradients[i].node; is_made(gradient) && local_.trained[i].valid())
        g.gradients.push_back({place(local_.trained[i]), place(gradient)});
    for (const Update& given : local_.given_gradients) g.gradients.push_back({place(given.target), place(given.value)});
    if (is_made(local_.loss.node)) g.loss = place(local_.loss.node);
  }

  const Localized& local_;
  const Graph& graph_;
  std::vector<bool> live_, constant_;
  std::vector<NodeId> sum_of_;  // by term (partition/stage_meetings.h)
  std::vector<uint32_t> level_;
  std::vector<std::vector<uint32_t>> of_level_;  // nodes, by their levels; one more than there are
  uint32_t last_ = 0;
  std::vector<NodeId> at_;
  DeviceProgram out_;
};

}  // namespace

bool is_stored_by_launches(const Graph& graph, NodeId value) {
  const Op op = graph[value].op;
  return !is_declaration(op) && !is_collective(op);
}

std::vector<NodeId> results_of(const Localized& local) {
  std::vector<NodeId> results;
  const auto add = [&](const DeviceValue& value) {
    if (value.node.valid()) results.push_back(value.node);
  };
  for (const DeviceValue& output : local.outputs) add(output);
  for (const DeviceValue& update : local.updates)
    if (local.stores == DeviceUpdates::apart || !is_stored_by_launches(local.graph, update.node)) add(update);
  for (const DeviceValue& gradient : local.gradients) add(gradient);
  add(local.loss);
  return results;
}

DeviceProgram device_program(const Localized& local) { return Orderer(local).run(); }

}  // namespace einc
