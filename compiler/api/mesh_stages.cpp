// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/mesh_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/partition/stage_meetings.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

static_assert(kRoundOfMicrobatches == kMicrobatchRound);

bool trains(Part part) { return part == Part::training || part == Part::accumulation; }

class StagePlanner {
 public:
  StagePlanner(const Graph& graph, Part part, const ProgramInfo& info, const Bindings& given)
      : graph_(graph), info_(info), given_(given), stages_(graph.mesh.stages), pipeline_(std::make_shared<PipelinePlan>()) {
    dims_ = dims_of_part(graph, part, given);
    updates_ = updates_of(part);
    const Bindings values = graph.dims.bind(given).values;
    pipeline_->axis = stages_.over;
    pipeline_->microbatches = trains(part) ? stages_.microbatches.evaluate_integer(values).value() : 1;
  }

  StagedPlan run(const CompileRound& compile_round) {
    if (stages_.over != 0) refuse("the mesh has another axis before theirs: list it first");
    local_ = device_graph(graph_, given_);  // whose partition takes a microbatch's dims by itself
    local_.stores = updates_;
    places_ = place_stages(local_.graph, stages_.loop, stages_of(local_.graph, dims_));
    cut_ = cut_stages(local_, places_);
    for (const Update& update : local_.graph.updates)
      if (several() && places_.of[update.value.index] != kEveryStage && places_.round[update.value.index] == kMicrobatchRound)
        refuse("a state changes with each microbatch, by what a forward computes");
    if (const auto alone = meet_neighbours(cut_, local_, places_, pipeline_->microbatches))
      refuse(fmt::format("`{}` comes back to a stage that sends nothing of its sizes", name_of(*alone)));
    for (int s = 0; s < places_.stages; ++s) plan_stage(s, compile_round);
    pipeline_->behind.resize(static_cast<size_t>(places_.rounds));
    for (const StageSend& send : cut_.sends) transfer(send);
    for (int s = 0; s < places_.stages; ++s) check_order(s);
    for (int s = 0; s < places_.stages; ++s)
      for (int r = 0; r < places_.rounds; ++r) sources(s, r);
    results();
    plan_.in_place = program(0, places_.rounds - 1).local.stores == DeviceUpdates::in_place;
    plan_.pipeline = pipeline_;
    return {std::move(plan_), pipeline_};
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorKind::program, fmt::format("stages of `{}` cannot be run: {}", stages_.loop.str(), why));
  }
  std::string name_of(NodeId id) const {
    const Origin& origin = local_.graph[id].origin;
    return origin.label.str().empty() ? std::string(to_string(local_.graph[id].op)) : origin.label.str();
  }
  bool several() const { return pipeline_->microbatches > 1; }

  const StageProgram& program(int s, int r) const { return cut_.stages[static_cast<size_t>(s)][static_cast<size_t>(r)]; }
  PipelineStage& stage(int s) { return pipeline_->stages[static_cast<size_t>(s)]; }
  MeshPlan& plan(int s, int r) { return stage(s).rounds[static_cast<size_t>(r)].plan; }
  uint32_t value_of(int s, int r, NodeId node) const { return value_of_.at({s, r}).at(node.index); }

  void plan_stage(int s, const CompileRound& compile_round) {
    PipelineStage& stage = pipeline_->stages.emplace_back();
    for (int r = 0; r < places_.rounds; ++r) {
      const StageProgram& p = program(s, r);
      StageRound& round = stage.rounds.emplace_back();
      if (results_of(p.local).empty() && p.local.updates.empty()) continue;
      PlannedMesh planned =
          plan_device_graph(p.local, info_, dims_, [&](const Localized& local, const DeviceProgram& device, const Bindings& dims) {
            return compile_round(static_cast<size_t>(s), static_cast<size_t>(r), local, device, dims);
          });
      round.plan = std::move(planned.plan);
      if (r == kMicrobatchRound) stage.kept = planned.kept;
      value_of_[{s, r}] = std::move(planned.value_of);
      for (const EarlierValue& earlier : p.earlier)
        round.earlier.push_back({value_of(s, r, earlier.here), earlier.round, value_of(s, earlier.round, earlier.there)});
      for (const auto& [whole, sum] : p.sums)
        if (!is_floating(local_.graph.type(NodeId{whole}).dtype))
          refuse(fmt::format("the update reads `{}` of each microbatch, which is not of floating point", name_of(NodeId{whole})));
      if (r == kMicrobatchRound)
        for (const auto& [whole, sum] : p.sums) {
          stage.sums.push_back(value_of(s, r, sum));
          if (!keeps_largest(p.local.graph[sum])) stage.means.push_back(stage.sums.back());
        }
      EINC_CHECK(std::ranges::count(round.plan.steps, DeviceAct::agree, &DeviceStep::act) <= 1, "a stage stores before all agree");
    }
    std::ranges::sort(stage.sums), std::ranges::sort(stage.means);
    const MeshPlan& each = stage.rounds[kMicrobatchRound].plan;
    const auto comes_back = [&](const DeviceStep& step) {
      const MeshCollective* c = step.act == DeviceAct::wait ? &each.collectives[step.index] : nullptr;
      return c && c->mesh_axis == stages_.over && c->by == kRoundTrip;
    };
    stage.backward = static_cast<size_t>(std::ranges::find_if(each.steps, comes_back) - each.steps.begin());
  }

  void transfer(const StageSend& send) {
    const StageProgram& maker = program(send.from, send.made);
    const auto sum = maker.sums.find(send.value.index);
    const bool is_sum = send.wanted > kMicrobatchRound && sum != maker.sums.end();
    const NodeId made = is_sum ? sum->second : maker.at[send.value.index];
    const StageTransfer t{{send.from, send.made, value_of(send.from, send.made, made)},
                          {send.to, send.wanted, value_of(send.to, send.wanted, program(send.to, send.wanted).at[send.value.index])}};
    auto& list = !send.of_microbatch() ? pipeline_->behind[static_cast<size_t>(send.made)]
                 : send.from < send.to ? pipeline_->up
                                       : pipeline_->down;
    if (&list == &pipeline_->up) up_values_.push_back(send.value);
    list.push_back(t);
  }

  // What goes up is made before anything is waited for that comes back for it.
  void check_order(int s) {
    const MeshPlan& each = plan(s, kMicrobatchRound);
    const uint32_t launches = launches_before(each, stage(s).backward);
    const auto is_behind = [&](uint32_t value) {
      for (size_t i = stage(s).backward; i < each.steps.size(); ++i)
        if (each.steps[i].act == DeviceAct::wait && each.collectives[each.steps[i].index].to == value) return true;
      return std::ranges::any_of(each.code.bound, [&](const BoundValue& b) { return b.value == value && b.launches > launches; });
    };
    for (size_t i = 0; i < pipeline_->up.size(); ++i) {
      const auto& [from, to] = pipeline_->up[i];
      if (from.stage == s && is_behind(from.value))
        refuse(fmt::format("`{}` goes up to stage {}, but follows from what comes back", name_of(up_values_[i]), to.stage));
    }
  }

  uint32_t add(const StageValue& value, const DeviceTensor& tensor) {
    pipeline_->values.push_back(value);
    plan_.values.push_back(tensor);
    plan_.values.back().offset = kElsewhere;
    return static_cast<uint32_t>(plan_.values.size() - 1);
  }
  uint32_t add(const StageValue& value) { return add(value, plan(value.stage, value.round).values[value.value]); }
  PartLayout at_stage(PartLayout layout, int s) const {
    layout.of_axis = stages_.over, layout.at = s;
    return layout;
  }

  void sources(int s, int r) {
    const ProgramInfo of_microbatch = [&] {
      ProgramGraphs graphs;
      graphs.parts[Part::forward] = graph_;
      graphs.dims = dims_;
      return program_info(graphs);
    }();
    for (const MeshSource& source : plan(s, r).sources) {
      const auto key = std::tuple(s, source.source.kind, source.source.index);
      if (source.source.kind == SourceKind::input) {
        if (r != kMicrobatchRound) refuse("the update reads an input");
        const TensorInfo& all = info_.inputs[source.source.index];
        const DeviceTensor tensor{all.dtype, all.shape, all.bytes(), kElsewhere};
        const uint32_t whole = add({s, r, source.value}, tensor);
        stage(s).inputs.push_back({whole, source.value, source.layout, of_microbatch.inputs[source.source.index].shape, all.shape});
        PartLayout layout;
        layout.over.resize(all.shape.size()), layout.zigzag.resize(all.shape.size(), kNoZigzag);
        plan_.sources.push_back({source.source, whole, at_stage(layout, s)});
      } else if (!source_index_.contains(key)) {
        source_index_[key] = static_cast<uint32_t>(plan_.sources.size());
        plan_.sources.push_back({source.source, add({s, r, source.value}), at_stage(source.layout, s)});
      }
    }
  }

  void results() {
    plan_.outputs.resize(info_.outputs.size());
    for (int s = 0; s < places_.stages; ++s)
      for (int r = 0; r < places_.rounds; ++r) {
        const MeshPlan& p = plan(s, r);
        for (size_t i = 0; i < p.outputs.size(); ++i) output(s, r, program(s, r).local.graph.outputs[i].name.str(), p.outputs[i]);
        for (const MeshUpdate& update : p.updates) {
          const Source target = p.sources[update.source].source;
          const uint32_t source = source_index_.at({s, target.kind, target.index});
          const bool stored = update.value == p.sources[update.source].value;
          plan_.updates.push_back({source, stored ? plan_.sources[source].value : add({s, r, update.value})});
        }
        if (p.loss < 0) continue;
        EINC_CHECK(r == kMicrobatchRound, "a loss is made once a step");
        pipeline_->loss = {s, r, static_cast<uint32_t>(p.loss)};
        plan_.loss = add(pipeline_->loss, {DType::f64, {}, sizeof(double), kElsewhere});
      }
    for (size_t i = 0; i < local_.gradients.size(); ++i) gradient(i);
  }

  void output(int s, int r, const std::string& name, const MeshResult& result) {
    for (size_t o = 0; o < info_.outputs.size(); ++o) {
      if (info_.outputs[o].name != name) continue;
      if (r == kMicrobatchRound && several()) refuse(fmt::format("output `{}` is one of each microbatch", name));
      plan_.outputs[o] = {add({s, r, result.value}), at_stage(result.layout, s)};
    }
  }

  void gradient(size_t i) {
    const DeviceValue& value = local_.gradients[i];
    if (!value.node.valid()) return;
    const int s = places_.of[value.node.index], r = places_.round[value.node.index];
    const auto sum = program(s, r).sums.find(value.node.index);
    // Where the mesh spreads what the update reads, parts of a gradient are added up, not the whole: what is there is the last
    // microbatch's.
    const bool of_each = r == kMicrobatchRound && several() && places_.of_data[value.node.index];
    if (of_each && sum == program(s, r).sums.end()) return;
    const NodeId at = sum != program(s, r).sums.end() ? sum->second : program(s, r).at[value.node.index];
    const auto known = value_of_[{s, r}].find(at.index);
    if (known == value_of_[{s, r}].end()) return;  // nobody but who asks for it reads it, and a part of it alone is in memory
    const Node& param = graph_[graph_.gradients[i].target];
    plan_.gradients.emplace_back(param.as<ParamAttr>().path.str(), MeshResult{add({s, r, known->second}), at_stage(layout_of(value), s)});
  }

  const Graph& graph_;
  const ProgramInfo& info_;
  const Bindings& given_;  // of a whole batch
  const PipelineStages& stages_;
  Bindings dims_;  // of a microbatch
  DeviceUpdates updates_ = DeviceUpdates::apart;
  std::shared_ptr<PipelinePlan> pipeline_;
  Localized local_;
  StagePlaces places_;
  StagePrograms cut_;
  MeshPlan plan_;
  std::map<std::pair<int, int>, std::unordered_map<uint32_t, uint32_t>> value_of_;  // by stage and round
  std::map<std::tuple<int, SourceKind, uint32_t>, uint32_t> source_index_;
  std::vector<NodeId> up_values_;  // of pipeline_->up, in the whole's graph
};

}  // namespace

Bindings dims_of_part(const Graph& graph, Part part, const Bindings& given) { return trains(part) ? microbatch_dims(graph, given) : given; }

StagedPlan plan_stages(const Graph& graph, Part part, const ProgramInfo& info, const Bindings& given, const CompileRound& compile_round) {
  return StagePlanner(graph, part, info, given).run(compile_round);
}

}  // namespace einc
