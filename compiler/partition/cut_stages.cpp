// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/cut_stages.h"

#include <fmt/format.h>

#include "compiler/ir/build.h"
#include "compiler/partition/device_program.h"

namespace einc {
namespace {

// No input or output of a program has a name with a space.
Name sent_name(NodeId of_whole) { return Name(fmt::format("stage value {}", of_whole.index)); }

class StageCutter {
 public:
  StageCutter(const Localized& local, const StagePlaces& places, int stage, std::vector<StageSend>& sends)
      : whole_(local), in_(local.graph), places_(places), stage_(stage), sends_(sends), build_(out_.local.graph) {
    Graph& g = out_.local.graph;
    g.name = in_.name, g.dims = in_.dims, g.mesh = in_.mesh, g.policy = in_.policy;
    g.loops = in_.loops, g.loop_contexts = in_.loop_contexts, g.chosen_by = in_.chosen_by;
    out_.at.resize(in_.size());
    out_.local.coordinates.resize(local.coordinates.size());
  }

  StageProgram run(const std::vector<bool>& live) {
    for (uint32_t i = 0; i < in_.size(); ++i)
      if (live[i] && places_.of[i] == stage_) place(NodeId{i});
    roots();
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

  // A value that another stage reads lasts until it is sent: it is a result of its stage. Once for all stages that read it, which is known
  // when all are cut.
  static void keep_sent(StageProgram& stage, NodeId value) {
    const NodeId at = stage.at[value.index];
    Graph& g = stage.local.graph;
    stage.local.outputs.push_back({at, Layout(g.type(at).rank())});
    g.outputs.push_back({sent_name(value), at});
  }

 private:
  bool is_here(NodeId id) const { return places_.of[id.index] == stage_ || places_.of[id.index] == kEveryStage; }

  NodeId place(NodeId id) {
    if (out_.at[id.index].valid()) return out_.at[id.index];
    if (!is_here(id)) return received(id);
    Node node = in_[id];
    for (NodeId& operand : node.operands) operand = place(operand);
    return out_.at[id.index] = build_.append(std::move(node));
  }

  DeviceValue placed(DeviceValue value) {
    value.node = place(value.node);
    return value;
  }

  NodeId received(NodeId id) {
    sends_.push_back({id, places_.of[id.index], stage_});
    Node node;
    node.op = Op::input;
    node.type = in_.type(id);
    node.attr = InputAttr{sent_name(id)};
    node.origin = in_[id].origin;
    const NodeId at = build_.append(std::move(node));
    out_.local.declared.push_back({at, Layout(in_.type(id).rank())});
    return out_.at[id.index] = at;
  }

  // A result is its maker's; what is made wherever it is read, the first stage hands out.
  bool has_result(NodeId id) const { return places_.of[id.index] == stage_ || (places_.of[id.index] == kEveryStage && stage_ == 0); }

  void roots() {
    Graph& g = out_.local.graph;
    for (size_t i = 0; i < whole_.outputs.size(); ++i)
      if (const DeviceValue& value = whole_.outputs[i]; has_result(value.node)) {
        out_.local.outputs.push_back(placed(value));
        g.outputs.push_back({in_.outputs[i].name, out_.local.outputs.back().node});
      }
    for (size_t i = 0; i < whole_.updates.size(); ++i) {
      const NodeId target = in_.updates[i].target;
      // A number that every stage counts for itself, such as that of the step, is updated where it is read: its copies stay equal.
      if (!is_here(target) || (!out_.at[target.index].valid() && !has_result(target))) continue;
      out_.local.updates.push_back(placed(whole_.updates[i]));
      g.updates.push_back({place(target), out_.local.updates.back().node});
    }
    for (const DeviceValue& gradient : whole_.gradients)
      if (gradient.node.valid() && has_result(gradient.node)) out_.local.gradients.push_back(placed(gradient));
    if (const DeviceValue& loss = whole_.loss; loss.node.valid() && has_result(loss.node)) {
      out_.local.loss = placed(loss);
      g.loss = out_.local.loss.node;
    }
  }

  const Localized& whole_;
  const Graph& in_;
  const StagePlaces& places_;
  const int stage_;
  std::vector<StageSend>& sends_;
  StageProgram out_;
  Builder build_;
};

// What no result needs would be another stage's to send.
std::vector<bool> live_nodes(const Localized& local) {
  std::vector<bool> live(local.graph.size(), false);
  for (const NodeId id : results_of(local)) live[id.index] = true;
  for (const Update& update : local.graph.updates) live[update.target.index] = true;
  for (uint32_t i = local.graph.size(); i-- > 0;)
    if (live[i])
      for (const NodeId operand : local.graph.nodes[i].operands) live[operand.index] = true;
  return live;
}

}  // namespace

StagePrograms cut_stages(const Localized& local, const StagePlaces& places) {
  StagePrograms out;
  const std::vector<bool> live = live_nodes(local);
  for (int stage = 0; stage < places.stages; ++stage) out.stages.push_back(StageCutter(local, places, stage, out.sends).run(live));
  std::vector<bool> kept(local.graph.size(), false);
  for (const StageSend& send : out.sends)
    if (!kept[send.value.index]) {
      kept[send.value.index] = true;
      StageCutter::keep_sent(out.stages[static_cast<size_t>(send.from)], send.value);
    }
  return out;
}

}  // namespace einc
