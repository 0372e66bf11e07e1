// SPDX-License-Identifier: Apache-2.0
// Forwards go up the stages and backwards down: so what stands outside the loop is with the last stage that a forward's operands come from,
// and with the first that a backward's do. Weights, and what reads nothing that has a place yet (an embedding), stand with their first
// reader: a weight that several stages read lies on the first of them and is sent to the others once a step.
#include "compiler/partition/place_stages.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/examples.h"
#include "compiler/ir/remap.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

constexpr int kNowhere = -2;  // not known yet

bool is_weight(const Node& node) { return (node.op == Op::param || node.op == Op::state) && node.type.rank() > 0; }

// By node: it is such a source, or made of one.
std::vector<bool> follows_from(const Graph& graph, bool (*is_source)(const Node&)) {
  std::vector<bool> follows(graph.size(), false);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const auto& operands = graph.nodes[i].operands;
    follows[i] = is_source(graph.nodes[i]) || std::ranges::any_of(operands, [&](NodeId x) { return follows[x.index]; });
  }
  return follows;
}

bool adds(const Node& node) { return is_map(node, MapFn::add); }

// Of a sum over microbatches it can be taken as well as of each: it adds, moves or narrows.
bool passes_sums(const Node& node) {
  return adds(node) || node.op == Op::cast || node.op == Op::permute || node.op == Op::split || node.op == Op::merge ||
         is_collective(node.op);
}

bool is_data(const Node& node) { return node.op == Op::input || node.op == Op::random; }

class Placer {
 public:
  Placer(const Graph& graph, Name loop, std::span<const int64_t> firsts)
      : graph_(graph), data_(follows_from(graph, is_data)), weights_(follows_from(graph, is_weight)), firsts_(firsts) {
    out_.stages = static_cast<int>(firsts.size());
    const auto is_loop = [&](const Loop& known) { return known.trip_count == graph.dims.size(loop); };
    loop_ = static_cast<uint32_t>(std::ranges::find_if(graph.loops, is_loop) - graph.loops.begin());
    out_.of.assign(graph.size(), kNowhere);
  }

  StagePlaces run() {
    find_users();
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (!is_of_optimizer(i)) out_.of[i] = by_operands(i);
    for (uint32_t i = graph_.size(); i-- > 0;) stand_with_readers(i, false);
    for (uint32_t i = 0; i < graph_.size(); ++i) stand_with_operands(i);
    for (uint32_t i = 0; i < graph_.size(); ++i) stand_with_wider(i);
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (is_of_optimizer(i)) out_.of[i] = of_update(i);
    for (uint32_t i = graph_.size(); i-- > 0;) stand_with_readers(i, true);
    for (const Update& update : graph_.updates)
      if (int& place = out_.of[update.target.index]; place == kNowhere) place = std::max(0, out_.of[update.value.index]);
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      int& place = out_.of[i];
      if (is_scan_result(i)) place = out_.of[graph_.nodes[i].operands[0].index];
      if (place == kNowhere) place = 0;  // a result that nothing else has to do with
    }
    keep_numbers_with_readers();
    out_.of_weights = of_weights_alone(graph_), out_.of_data = data_;
    find_for_update();
    find_rounds();
    return std::move(out_);
  }

 private:
  bool is_of_optimizer(uint32_t i) const { return graph_.nodes[i].origin.phase == Phase::optimizer; }

  // A scan's results stand where it does: who reads them reads it.
  void find_users() {
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      users_.emplace_back();
      for (NodeId x : graph_.nodes[i].operands) {
        users_[x.index].push_back(i);
        if (graph_[x].op == Op::scan_result) users_[graph_[x].operands[0].index].push_back(i);
      }
    }
  }
  bool is_scan_result(uint32_t i) const { return graph_.nodes[i].op == Op::scan_result; }

  // The stage that has the iteration which a node is of; kNowhere: it is of none.
  int by_iteration(uint32_t i) const {
    for (uint32_t c = graph_.nodes[i].origin.loop_context; c != 0; c = graph_.loop_contexts[c].parent) {
      const LoopContext& context = graph_.loop_contexts[c];
      if (context.loop != loop_) continue;
      return static_cast<int>(std::ranges::upper_bound(firsts_, context.iteration) - firsts_.begin()) - 1;
    }
    return kNowhere;
  }

  // The stage that has all terms of a gradient: it adds them up, and sends one value, not several.
  int of_terms(uint32_t i) const {
    const Node& node = graph_.nodes[i];
    if (node.origin.phase != Phase::backward || !adds(node)) return kNowhere;
    const int first = out_.of[node.operands[0].index];
    const bool together = std::ranges::all_of(node.operands, [&](NodeId x) { return out_.of[x.index] == first; });
    return together && first >= 0 ? first : kNowhere;
  }

  int by_operands(uint32_t i) const {
    if (!weights_[i]) return kEveryStage;
    if (is_scan_result(i)) return out_.of[graph_.nodes[i].operands[0].index];
    if (const int stage = of_terms(i); stage != kNowhere) return stage;
    if (const int stage = by_iteration(i); stage != kNowhere) return stage;
    if (!data_[i]) return kNowhere;
    int last = kNowhere, first = std::numeric_limits<int>::max();
    for (const NodeId x : graph_.nodes[i].operands) {
      const int place = out_.of[x.index];
      if (place < 0 || !data_[x.index]) continue;
      last = std::max(last, place);
      if (graph_[x].origin.phase == Phase::backward) first = std::min(first, place);
    }
    const bool goes_down = graph_.nodes[i].origin.phase == Phase::backward && first != std::numeric_limits<int>::max();
    return goes_down ? first : last;
  }

  // Tensors of a param stay with it; single numbers, as terms of a norm are, go up.
  int of_update(uint32_t i) const {
    if (!weights_[i]) return kEveryStage;
    if (is_scan_result(i)) return out_.of[graph_.nodes[i].operands[0].index];
    if (const int stage = by_iteration(i); stage != kNowhere) return stage;
    int tensors = std::numeric_limits<int>::max(), scalars = kNowhere;
    for (const NodeId x : graph_.nodes[i].operands) {
      const int place = out_.of[x.index];
      if (place < 0) continue;
      if (graph_.type(x).rank() > 0)
        tensors = std::min(tensors, place);
      else
        scalars = std::max(scalars, place);
    }
    return tensors != std::numeric_limits<int>::max() ? tensors : scalars;
  }

  void stand_with_readers(uint32_t i, bool optimizer) {
    if (out_.of[i] != kNowhere || is_scan_result(i) || (!optimizer && is_of_optimizer(i))) return;
    for (const uint32_t user : users_[i]) {
      const int place = out_.of[user];
      if (place < 0 || (!optimizer && is_of_optimizer(user))) continue;
      if (out_.of[i] == kNowhere || place < out_.of[i]) out_.of[i] = place;
    }
  }

  // What only the update reads of a weight, as its largest element: else the weight would be sent to the first stage for it.
  void stand_with_operands(uint32_t i) {
    if (out_.of[i] != kNowhere || is_scan_result(i) || is_of_optimizer(i)) return;
    for (const NodeId x : graph_.nodes[i].operands)
      out_.of[i] = std::max(out_.of[i], out_.of[x.index] == kEveryStage ? kNowhere : out_.of[x.index]);
  }

  // A weight for another stage is made narrow where it lies: once a step, and fewer bytes are sent.
  void stand_with_wider(uint32_t i) {
    const Node& node = graph_.nodes[i];
    if (node.op != Op::cast || data_[i] || is_of_optimizer(i) || out_.of[i] < 0) return;
    const NodeId wider = node.operands[0];
    if (out_.of[wider.index] >= 0 && bytes_of(node.type.dtype) < bytes_of(graph_.type(wider).dtype)) out_.of[i] = out_.of[wider.index];
  }

  // A state of a single number, as the largest element that scales an fp8 value, stands with the only stage that reads it: its new value
  // need not be sent to all.
  void keep_numbers_with_readers() {
    constexpr int kSeveral = -3;
    std::vector<int> reader(graph_.size(), kNowhere);  // by node: the stage that reads it, or what is made of it wherever it is read
    const auto read_in = [&](uint32_t i, int stage) {
      if (stage != kNowhere) reader[i] = reader[i] == kNowhere || reader[i] == stage ? stage : kSeveral;
    };
    const std::vector<bool> is_result = results();
    for (const Update& update : graph_.updates) read_in(update.value.index, kSeveral);  // made here, it is stored everywhere
    for (uint32_t i = graph_.size(); i-- > 0;) {
      for (const uint32_t user : users_[i]) read_in(i, out_.of[user] == kEveryStage ? reader[user] : out_.of[user]);
      if (is_result[i] && out_.of[i] == kEveryStage) read_in(i, 0);
      if (graph_.nodes[i].op == Op::state && out_.of[i] == kEveryStage && reader[i] >= 0) out_.of[i] = reader[i];
    }
  }

  std::vector<bool> results() const {
    std::vector<bool> is_result(graph_.size(), false);
    for (const Output& output : graph_.outputs) is_result[output.node.index] = true;
    if (graph_.loss.valid()) is_result[graph_.loss.index] = true;
    return is_result;
  }

  void find_for_update() {
    const std::vector<bool> is_result = results();
    out_.for_update.assign(graph_.size(), false);
    for (uint32_t i = graph_.size(); i-- > 0;) {
      const auto only_updates = [&](uint32_t user) {
        return is_of_optimizer(user) || (out_.for_update[user] && passes_sums(graph_.nodes[user]));
      };
      out_.for_update[i] = !is_result[i] && graph_.nodes[i].origin.phase != Phase::forward && std::ranges::all_of(users_[i], only_updates);
    }
  }

  // Terms of gradients are added up over microbatches before anything crosses devices for them, but where devices share out each
  // microbatch's: then the sums are parts.
  bool is_of_each(uint32_t i) const {
    const Node& node = graph_.nodes[i];
    if (is_of_optimizer(i)) return false;
    if (!out_.for_update[i] || !passes_sums(node)) return true;
    if (is_collective(node.op) && graph_.mesh.gradients.empty() && graph_.mesh.params.empty()) return false;
    return std::ranges::all_of(node.operands, [&](NodeId x) {
      const int place = out_.of[x.index];
      return out_.round[x.index] < kUpdateRound && (place == kEveryStage || place == out_.of[i]);
    });
  }

  // By node: made of weights once a step. Views are made where they are read, and so is what the mesh spreads, which is put together for
  // each microbatch.
  std::vector<bool> made_once() const {
    std::vector<bool> may(graph_.size(), false), once(graph_.size(), false);
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const bool gathered = node.op == Op::all_gather && !graph_.mesh.params.empty();
      may[i] = out_.of_weights[i] && !gathered && std::ranges::all_of(node.operands, [&](NodeId x) {
                 const int place = out_.of[x.index];
                 return place == kEveryStage || (may[x.index] && place == out_.of[i]);
               });
    }
    for (uint32_t i = graph_.size(); i-- > 0;) {
      const Op op = graph_.nodes[i].op;
      once[i] = may[i] && !is_declaration(op) && !is_of_optimizer(i) &&
                (kind_of(op) != OpKind::view || std::ranges::any_of(users_[i], [&](uint32_t user) { return once[user]; }));
    }
    return once;
  }

  void find_rounds() {
    out_.round.assign(graph_.size(), kWeightsRound);
    const std::vector<bool> once = made_once();
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      if (out_.of[i] == kEveryStage || is_declaration(graph_.nodes[i].op) || once[i]) continue;
      int& round = out_.round[i] = is_of_each(i) ? kMicrobatchRound : kUpdateRound;
      if (round == kMicrobatchRound) continue;
      for (const NodeId x : graph_.nodes[i].operands) {
        const int place = out_.of[x.index];
        if (place != kEveryStage) round = std::max(round, out_.round[x.index] + (place == out_.of[i] ? 0 : 1));
      }
      out_.rounds = std::max(out_.rounds, round + 1);
    }
    for (const Update& update : graph_.updates) {
      const int maker = out_.of[update.value.index], round = out_.round[update.value.index];
      if (round != kMicrobatchRound && maker != out_.of[update.target.index]) out_.rounds = std::max(out_.rounds, round + 2);
    }
    wait_for_readers();
  }

  // All stages store in the last round, behind one agreement. And what the update makes early, such as moments that have decayed, would lie
  // in memory from round to round.
  void wait_for_readers() {
    const std::vector<bool> is_result = results();
    constexpr int kNever = std::numeric_limits<int>::max();
    std::vector<int> stored(graph_.size(), kNever);  // by node: the last round in which it may be made for an update
    for (const Update& update : graph_.updates) {
      const uint32_t value = update.value.index;
      stored[value] = std::min(stored[value], out_.rounds - (out_.of[value] == out_.of[update.target.index] ? 1 : 2));
    }
    for (uint32_t i = graph_.size(); i-- > 0;) {
      if (!is_of_optimizer(i) || out_.of[i] < 0 || out_.round[i] < kUpdateRound || is_result[i]) continue;
      if (users_[i].empty() && stored[i] == kNever) continue;
      int latest = stored[i];
      for (const uint32_t user : users_[i]) {
        const int place = out_.of[user];
        latest = std::min(latest, place == kEveryStage ? out_.round[i] : out_.round[user] - (place == out_.of[i] ? 0 : 1));
      }
      out_.round[i] = std::max(out_.round[i], latest);
    }
  }

  const Graph& graph_;
  std::vector<bool> data_, weights_;  // by node: whether it depends on inputs or draws, and on params or states that are tensors
  std::vector<std::vector<uint32_t>> users_;
  std::span<const int64_t> firsts_;  // iterations, by stage
  uint32_t loop_ = 0;
  StagePlaces out_;
};

}  // namespace

std::vector<bool> of_weights_alone(const Graph& graph) {
  const std::vector<bool> data = follows_from(graph, is_data);
  std::vector<bool> weights = follows_from(graph, is_weight);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = weights[i] && !data[i];
  return weights;
}

int64_t first_iteration(int64_t stage, int64_t stages, int64_t iterations) { return (stage * iterations + stages - 1) / stages; }

Bindings microbatch_dims(const Graph& graph, const Bindings& given) {
  const PipelineStages& stages = graph.mesh.stages;
  if (!stages.any()) return given;
  const Name examples = examples_dim(graph);
  const Bindings values = graph.dims.bind(given).values;
  const auto whole = values.find(examples);
  const auto parts = stages.microbatches.evaluate_integer(values);
  if (whole == values.end() || !parts || *parts < 1 || whole->second % *parts != 0) return given;
  Bindings micro = given;
  micro[examples] = whole->second / *parts;
  return micro;
}

std::vector<int64_t> even_stages(int64_t stages, int64_t iterations) {
  std::vector<int64_t> firsts;
  for (int64_t s = 0; s < stages; ++s) firsts.push_back(first_iteration(s, stages, iterations));
  return firsts;
}

std::vector<int64_t> stages_of(const Graph& graph, const Bindings& given) {
  const PipelineStages& stages = graph.mesh.stages;
  const Bindings values = graph.dims.bind(given).values;
  return even_stages(graph.mesh.axes[static_cast<size_t>(stages.over)].size.evaluate_integer(values).value(),
                     graph.dims.size(stages.loop).evaluate_integer(values).value());
}

StagePlaces place_stages(const Graph& graph, Name loop, std::span<const int64_t> firsts) { return Placer(graph, loop, firsts).run(); }

}  // namespace einc
