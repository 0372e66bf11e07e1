// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/cut_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "compiler/ir/build.h"
#include "compiler/partition/device_program.h"
#include "runtime/base/check.h"
#include "runtime/base/training_names.h"

namespace einc {
namespace {

constexpr std::string_view kStageValue = "stage value ";  // with a space: no input or output of a program has such a name

class StageCutter {
 public:
  // `first_alike`: as first_gathers has it.
  StageCutter(const Localized& local, const StagePlaces& places, const std::vector<NodeId>& first_alike, int stage, int round)
      : whole_(local),
        in_(local.graph),
        places_(places),
        first_alike_(first_alike),
        stage_(stage),
        round_(round),
        build_(out_.local.graph) {
    Graph& g = out_.local.graph;
    g.name = in_.name, g.dims = in_.dims.without_conditions(), g.mesh = in_.mesh, g.policy = in_.policy;
    g.loops = in_.loops, g.loop_contexts = in_.loop_contexts, g.chosen_by = in_.chosen_by;
    // A program without an update has no round of its own for it.
    if (local.stores == DeviceUpdates::in_place && places.rounds > kUpdateRound && round == places.rounds - 1)
      out_.local.stores = DeviceUpdates::in_place;
    out_.local.coordinates.resize(local.coordinates.size());
  }

  // `own`: nodes of the stage and the round that are no declarations, in order.
  StageProgram run(std::span<const NodeId> own) {
    for (const NodeId id : own) place(id);
    roots();
    if (out_.is_empty()) return std::move(out_);
    for (size_t c = 0; c < whole_.collectives.size(); ++c)
      if (const NodeId at = out_.at[whole_.collectives[c].index]; at.valid() && is_collective(out_.local.graph[at].op))
        out_.local.collectives.push_back(at), out_.numbers.push_back(c);
    for (const DeviceValue& declared : whole_.declared)
      if (const NodeId at = out_.at[declared.node.index]; at.valid() && is_here(declared.node))
        out_.local.declared.push_back({at, declared.layout, declared.zigzag});
    for (size_t m = 0; m < whole_.coordinates.size(); ++m)
      if (const NodeId id = whole_.coordinates[m]; id.valid()) out_.local.coordinates[m] = out_.at[id.index];
    return std::move(out_);
  }

  // What another program makes is an input.
  static NodeId take(StageProgram& program, const Localized& whole, NodeId id) {
    program.taken.push_back(id);
    Node node;
    node.op = Op::input;
    node.type = whole.graph.type(id);
    node.attr = InputAttr{stage_value_name(id)};
    node.origin = whole.graph[id].origin;
    const NodeId at = Builder(program.local.graph).append(std::move(node));
    program.local.declared.push_back({at, Layout(whole.graph.type(id).rank())});
    program.at.put(id.index, at);
    return at;
  }

  // A value that another program reads lasts until it is taken: it is a result of its own. Once for all that read it, which is known when
  // all are cut.
  static void keep_taken(StageProgram& program, const Localized& whole, NodeId value) {
    Graph& g = program.local.graph;
    NodeId at = program.at[value.index];
    if (!at.valid()) {  // a declaration that the stage itself reads in other rounds
      EINC_CHECK(is_declaration(whole.graph[value].op), "a value is taken from where it is not made");
      at = Builder(g).append(Node(whole.graph[value]));
      program.at.put(value.index, at);
      const DeviceValue& declared = *std::ranges::find(whole.declared, value, &DeviceValue::node);
      program.local.declared.push_back({at, declared.layout, declared.zigzag});
    }
    program.local.outputs.push_back({at, Layout(g.type(at).rank())});
    g.outputs.push_back({stage_value_name(value), at});
  }

 private:
  // Declarations are whichever round's reads them.
  bool is_here(NodeId id) const {
    const int place = places_.of[id.index];
    return place == kEveryStage || (place == stage_ && (places_.round[id.index] == round_ || is_declaration(in_[id].op)));
  }

  NodeId place(NodeId id) {
    if (const NodeId known = out_.at[id.index]; known.valid()) return known;
    const NodeId placed = is_here(id) ? copy(id) : taken(first_alike_[id.index]);
    out_.at.put(id.index, placed);
    return placed;
  }
  NodeId copy(NodeId id) {
    Node node = in_[id];
    for (NodeId& operand : node.operands) operand = place(operand);
    return build_.append(std::move(node));
  }
  NodeId taken(NodeId first) {
    const NodeId known = out_.at[first.index];
    return known.valid() ? known : take(out_, whole_, first);
  }

  DeviceValue placed(DeviceValue value) {
    value.node = place(value.node);
    return value;
  }

  // A result is its maker's; what is made wherever it is read, the first stage hands out.
  bool has_result(NodeId id) const {
    const int place = places_.of[id.index];
    const bool of_each = places_.of_data[id.index] && in_[id].origin.phase != Phase::optimizer;
    const int of_step = of_each ? kMicrobatchRound : first_of_update();
    return place == kEveryStage ? stage_ == 0 && round_ == of_step : place == stage_ && places_.round[id.index] == round_;
  }

  int first_of_update() const { return std::min(kUpdateRound, places_.rounds - 1); }

  // An update is stored with its target, in the last round. A number that every stage counts for itself, such as that of the step, each
  // updates: its copies stay equal.
  bool has_update(const Update& update) const {
    const int target = places_.of[update.target.index];
    return round_ == places_.rounds - 1 && (target == kEveryStage || target == stage_);
  }

  bool stores() const { return out_.local.stores == DeviceUpdates::in_place; }

  DeviceValue new_value(const DeviceValue& of_whole) {
    DeviceValue value = placed(of_whole);
    const Node& node = out_.local.graph[value.node];
    // What an earlier round or another stage makes is looked at, too: it is no declaration's element, which is as it must be, so a launch
    // stores it, and the guard of the round's updates sees that.
    if (stores() && node.op == Op::input) {
      build_.origin = node.origin, build_.origin.phase = Phase::optimizer;
      value.node = build_.cast(value.node, node.type.dtype);
    }
    return value;
  }

  // Gradients that the round only reads: those are looked at, too, before anything is stored. Under a loss scale one that is not finite
  // is the program's own affair.
  void find_given_gradients() {
    if (!stores() || has_state(in_, kLossScale)) return;
    for (size_t i = 0; i < whole_.gradients.size(); ++i) {
      const NodeId gradient = whole_.gradients[i].node, at = gradient.valid() ? out_.at[gradient.index] : NodeId{};
      if (at.valid() && out_.local.graph[at].op == Op::input) out_.local.given_gradients.push_back({place(whole_.trained[i]), at});
    }
  }

  void roots() {
    Graph& g = out_.local.graph;
    for (size_t i = 0; i < whole_.outputs.size(); ++i)
      if (const DeviceValue& value = whole_.outputs[i]; has_result(value.node)) {
        out_.local.outputs.push_back(placed(value));
        g.outputs.push_back({in_.outputs[i].name, out_.local.outputs.back().node});
      }
    for (size_t i = 0; i < whole_.updates.size(); ++i) {
      if (!has_update(in_.updates[i])) continue;
      out_.local.updates.push_back(new_value(whole_.updates[i]));
      g.updates.push_back({place(in_.updates[i].target), out_.local.updates.back().node});
    }
    for (size_t i = 0; i < whole_.gradients.size(); ++i)
      if (const DeviceValue& gradient = whole_.gradients[i]; gradient.node.valid() && has_result(gradient.node)) {
        out_.local.gradients.push_back(placed(gradient));
        if (stores()) out_.local.trained.push_back(has_state(in_, kLossScale) ? NodeId{} : place(whole_.trained[i]));
      }
    find_given_gradients();
    if (const DeviceValue& loss = whole_.loss; loss.node.valid() && has_result(loss.node)) {
      out_.local.loss = placed(loss);
      g.loss = out_.local.loss.node;
    }
  }

  const Localized& whole_;
  const Graph& in_;
  const StagePlaces& places_;
  const std::vector<NodeId>& first_alike_;
  const int stage_, round_;
  StageProgram out_;
  Builder build_;
};

// By node: itself, or the first that gathers the same. A weight that is spread is put together again for the backward, but another stage
// has it from the forward: it would wait for what its own backward comes before.
std::vector<NodeId> first_gathers(const Graph& graph, const StagePlaces& places) {
  std::vector<NodeId> first;
  std::unordered_map<uint32_t, std::vector<NodeId>> gathers;  // by what they gather
  for (uint32_t i = 0; i < graph.size(); ++i) {
    first.push_back(NodeId{i});
    const Node& node = graph.nodes[i];
    if (node.op != Op::all_gather || places.of_data[i]) continue;
    std::vector<NodeId>& others = gathers[node.operands[0].index];
    const auto alike = std::ranges::find_if(others, [&](NodeId other) {
      return graph[other].attr == node.attr && places.of[other.index] == places.of[i] && places.round[other.index] == places.round[i];
    });
    if (alike != others.end()) first.back() = *alike;
    others.push_back(NodeId{i});
  }
  return first;
}

// What no result needs would be another stage's to send.
std::vector<bool> live_nodes(const Localized& local) {
  std::vector<bool> live(local.graph.size(), false);
  for (const NodeId id : results_of(local)) live[id.index] = true;
  for (const Update& update : local.graph.updates) live[update.target.index] = live[update.value.index] = true;
  for (uint32_t i = local.graph.size(); i-- > 0;)
    if (live[i])
      for (const NodeId operand : local.graph.nodes[i].operands) live[operand.index] = true;
  return live;
}

// What goes up or down for a microbatch goes from neighbour to neighbour, through stages that do not read it, too. A stage that sent past
// others would wait, with all that it sends after that, until the last of them comes to the microbatch; and that one waits for what comes
// down through the others.
void pass_on(StagePrograms& out, const Localized& whole) {
  struct SentOver {
    StageSend send;
    int lowest = 0, highest = 0;
  };
  std::vector<SentOver> reaches;  // by value, as they are first sent
  std::vector<StageSend> sends;
  for (const StageSend& send : out.sends) {
    if (!send.of_microbatch()) {
      sends.push_back(send);
      continue;
    }
    auto reach = std::ranges::find_if(reaches, [&](const SentOver& known) { return known.send.value == send.value; });
    if (reach == reaches.end()) reach = reaches.insert(reaches.end(), {send, send.from, send.from});
    reach->lowest = std::min(reach->lowest, send.to), reach->highest = std::max(reach->highest, send.to);
  }
  const auto program = [&](int stage) -> StageProgram& { return out.stages[static_cast<size_t>(stage)][kMicrobatchRound]; };
  const auto pass = [&](const SentOver& reach, int from, int to) {
    StageSend hop = reach.send;
    hop.from = from, hop.to = to;
    sends.push_back(hop);
    if (!program(to).at[hop.value.index].valid()) StageCutter::take(program(to), whole, hop.value);
  };
  // What comes back stands behind what it is made of.
  for (const SentOver& reach : reaches)
    for (int stage = reach.send.from; stage < reach.highest; ++stage) pass(reach, stage, stage + 1);
  for (const SentOver& reach : reaches)
    for (int stage = reach.send.from; stage > reach.lowest; --stage) {
      if (stage < reach.send.from) StageCutter::keep_taken(program(stage), whole, reach.send.value);
      pass(reach, stage, stage - 1);
    }
  out.sends = std::move(sends);
}

}  // namespace

Name stage_value_name(NodeId of_whole) { return Name(fmt::format("{}{}", kStageValue, of_whole.index)); }

StagePrograms cut_stages(const Localized& local, const StagePlaces& places) {
  StagePrograms out;
  const std::vector<bool> live = live_nodes(local);
  const std::vector<NodeId> first_alike = first_gathers(local.graph, places);
  // By stage and round, read off the graph once: there are as many rounds as stages where a sum passes through all of them.
  std::vector<std::vector<NodeId>> own(static_cast<size_t>(places.stages) * static_cast<size_t>(places.rounds));
  const auto own_of = [&](int stage, int round) -> std::vector<NodeId>& {
    return own[static_cast<size_t>(stage) * static_cast<size_t>(places.rounds) + static_cast<size_t>(round)];
  };
  for (uint32_t i = 0; i < local.graph.size(); ++i)
    if (live[i] && places.of[i] != kEveryStage && !is_declaration(local.graph.nodes[i].op))
      own_of(places.of[i], places.round[i]).push_back(NodeId{i});
  std::vector<std::pair<NodeId, StageSend>> taken;  // by what takes them
  for (int stage = 0; stage < places.stages; ++stage) {
    std::vector<StageProgram>& rounds = out.stages.emplace_back();
    std::vector<bool> sent(local.graph.size(), false);  // to this stage
    for (int round = 0; round < places.rounds; ++round) {
      rounds.push_back(StageCutter(local, places, first_alike, stage, round).run(own_of(stage, round)));
      for (const NodeId value : rounds.back().taken) {
        const StageSend send{value, places.of[value.index], stage, places.round[value.index], round};
        EINC_CHECK(send.made < round || (round == kMicrobatchRound && send.from != stage), "a value is read in the round that makes it");
        if (send.from != stage && !sent[value.index]) sent[value.index] = true, out.sends.push_back(send);
        taken.emplace_back(value, send);
      }
    }
  }
  std::vector<bool> kept(local.graph.size(), false);
  for (const auto& [value, send] : taken)
    if (!kept[value.index]) {
      kept[value.index] = true;
      StageCutter::keep_taken(out.stages[static_cast<size_t>(send.from)][static_cast<size_t>(send.made)], local, value);
    }
  pass_on(out, local);
  return out;
}

}  // namespace einc
