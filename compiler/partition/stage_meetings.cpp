// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/stage_meetings.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/build.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

// As scales of fp8 follow from: of microbatches it is the largest of all, not their mean.
bool is_largest_magnitude(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  const bool keeps_it = kind_of(node.op) == OpKind::view || is_reduce(node, ReduceFn::max);
  if (keeps_it) return is_largest_magnitude(graph, node.operands[0]);
  return is_map(node, MapFn::abs);
}

bool are_alike(const Type& a, const Type& b) { return std::ranges::equal(a.axes, b.axes, {}, &Axis::size, &Axis::size); }

class StageMeetings {
 public:
  StageMeetings(StagePrograms& programs, const Localized& whole, const StagePlaces& places, int64_t microbatches)
      : programs_(programs), whole_(whole), places_(places), axis_(whole.graph.mesh.stages.over), several_(microbatches > 1) {}

  std::optional<NodeId> run() {
    find_taken();
    for (int s = 0; s < places_.stages; ++s) {
      pair_with_sent(s);
      if (several_) sum_up(s);
    }
    for (int s = 0; s < places_.stages; ++s)
      for (int round = kMicrobatchRound; round < places_.rounds; ++round) find_earlier(s, round);
    return alone_;
  }

 private:
  StageProgram& program(int stage, int round) { return programs_.stages[static_cast<size_t>(stage)][static_cast<size_t>(round)]; }

  // What comes back is made of what went up, so that its node stands behind that one.
  void pair_with_sent(int s) {
    StageProgram& p = program(s, kMicrobatchRound);
    for (const NodeId value : p.taken) {
      const int from = places_.of[value.index];
      const bool once = places_.round[value.index] == kWeightsRound;
      if (once && from != s) p.local.lasting.push_back(p.at[value.index]);
      if (once || from < s) continue;
      const NodeId back = p.at[value.index], sent = sent_for(s, back);
      if (!sent.valid()) {
        if (!alone_) alone_ = value;
        continue;
      }
      Node& node = p.local.graph.nodes[back.index];
      node.op = Op::shift, node.operands = {sent}, node.attr = ShiftAttr{0, kRoundTrip, axis_};
      std::erase_if(p.local.declared, [&](const DeviceValue& d) { return d.node == back; });
      p.local.collectives.push_back(back);
    }
    send_before_waiting(s);
  }

  // What goes up and nothing comes back for is made before anything is waited for, too.
  void send_before_waiting(int s) {
    StageProgram& p = program(s, kMicrobatchRound);
    Graph& g = p.local.graph;
    for (const StageSend& send : programs_.sends) {
      if (send.from != s || send.to < s || !send.of_microbatch()) continue;
      const NodeId sent = p.at[send.value.index];
      if (is_declaration(g[sent].op)) continue;
      for (const NodeId back : p.local.collectives) {
        Node& node = g.nodes[back.index];
        if (is_round_trip(node, whole_.graph.mesh) && sent.index < back.index &&
            std::ranges::find(node.operands, sent) == node.operands.end())
          node.operands.push_back(sent);
      }
    }
  }

  // The last that is made and that nothing else comes back for: with each value that goes up before what comes back, none is left to be
  // made behind it.
  NodeId sent_for(int s, NodeId back) {
    StageProgram& p = program(s, kMicrobatchRound);
    const Graph& g = p.local.graph;
    NodeId found;
    bool found_free = false;
    for (const StageSend& send : programs_.sends) {
      if (send.from != s || send.to < s || !send.of_microbatch()) continue;
      const NodeId at = p.at[send.value.index];
      if (at.index >= back.index || !are_alike(g.type(at), g.type(back))) continue;
      const bool is_free = std::ranges::none_of(p.local.collectives,
                                                [&](NodeId c) { return is_round_trip(g[c], whole_.graph.mesh) && g[c].operands[0] == at; });
      if (found.valid() && std::pair(is_free, at.index) <= std::pair(found_free, found.index)) continue;
      found = at, found_free = is_free;
    }
    return found;
  }

  // Each value that later rounds read, and declarations not. A gradient of each microbatch alone is nobody's to ask for.
  void sum_up(int s) {
    StageProgram& p = program(s, kMicrobatchRound);
    Graph& g = p.local.graph;
    for (const DeviceValue& gradient : whole_.gradients)
      if (gradient.node.valid() && places_.of_data[gradient.node.index])
        std::erase_if(p.local.gradients, [&](const DeviceValue& d) { return d.node == p.at[gradient.node.index]; });
    for (const auto& [i, at] : p.at) {
      const NodeId value{i};
      if (is_declaration(whole_.graph.nodes[i].op) || places_.of[i] != s || places_.round[i] != kMicrobatchRound || !taken_behind_[i])
        continue;
      const auto output = std::ranges::find(g.outputs, stage_value_name(value), &Output::name);
      EINC_CHECK(output != g.outputs.end(), "a sum is no result");
      if (!taken_each_[i]) {
        p.local.outputs.erase(p.local.outputs.begin() + (output - g.outputs.begin()));
        g.outputs.erase(output);
      }
      // What is no number of floating point has no mean: it is planned for reports, and refused where it would run (api/mesh_stages).
      const bool is_largest = is_largest_magnitude(whole_.graph, value),
                 by_kernel = is_floating(g.type(at).dtype) && !is_collective(g[at].op);
      p.sums.emplace(i, by_kernel ? taken_by_kernel(p, is_largest ? MapFn::maximum : MapFn::add, at) : added_when_over(p, at));
    }
  }

  NodeId taken_by_kernel(StageProgram& p, MapFn fn, NodeId term) {
    Graph& g = p.local.graph;
    Builder build(g);
    build.origin = g[term].origin;
    const NodeId so_far = build.state(StateAttr{Name(fmt::format("stage sum {}", term.index)), Init{}, StateRole::sum}, g.type(term));
    const NodeId sum = build.map(fn, {so_far, term});
    const Layout layout(g.type(sum).rank());
    p.local.declared.push_back({so_far, layout});
    p.local.updates.push_back({sum, layout});
    g.updates.push_back({so_far, sum});
    return sum;
  }

  NodeId added_when_over(StageProgram& p, NodeId term) {
    Graph& g = p.local.graph;
    Node node;
    node.op = Op::shift, node.type = g.type(term), node.operands = {term}, node.attr = ShiftAttr{0, kSumOfMicrobatches, axis_};
    node.origin = g[term].origin;
    const NodeId sum = Builder(g).append(std::move(node));
    p.local.collectives.push_back(sum), p.local.lasting.push_back(sum);
    p.local.outputs.push_back({sum, Layout(g.type(sum).rank())});
    g.outputs.push_back({Name(fmt::format("stage sum {}", term.index)), sum});
    return sum;
  }

  void find_taken() {
    taken_each_.resize(whole_.graph.size()), taken_behind_.resize(whole_.graph.size());
    for (int s = 0; s < places_.stages; ++s)
      for (int round = kMicrobatchRound; round < places_.rounds; ++round)
        for (const NodeId value : program(s, round).taken) (round == kMicrobatchRound ? taken_each_ : taken_behind_)[value.index] = true;
  }

  void find_earlier(int s, int round) {
    StageProgram& p = program(s, round);
    for (const auto& [i, here] : p.at) {
      if (!is_declaration(p.local.graph[here].op)) continue;
      const bool is_made_here = places_.of[i] == s && !is_declaration(whole_.graph.nodes[i].op);
      for (int before = is_made_here ? places_.round[i] : 0; before < round; ++before) {
        const StageProgram& other = program(s, before);
        const auto sum = other.sums.find(i);
        const NodeId there = sum != other.sums.end() ? sum->second : other.at[i];
        if (!there.valid()) continue;
        p.earlier.push_back({here, before, there});
        p.local.elsewhere.push_back(here);
        break;
      }
    }
  }

  StagePrograms& programs_;
  const Localized& whole_;
  const StagePlaces& places_;
  const int axis_;
  const bool several_;
  std::optional<NodeId> alone_;
  std::vector<bool> taken_each_, taken_behind_;  // by node of the whole's graph: microbatches take it, later rounds
};

}  // namespace

std::optional<NodeId> meet_neighbours(StagePrograms& programs, const Localized& whole, const StagePlaces& places, int64_t microbatches) {
  return StageMeetings(programs, whole, places, microbatches).run();
}

}  // namespace einc
