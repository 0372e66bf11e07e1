// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/stage_steps.h"

#include <algorithm>

#include "compiler/partition/pipeline_timeline.h"

namespace einc {
namespace {

// Names of tensors and numbers of draws apart: layers of a model differ in nothing else, and their plans in nothing at all.
bool do_the_same(const Node& a, const Node& b) {
  if (a.op != b.op || !(a.type == b.type) || a.operands != b.operands || a.origin.phase != b.origin.phase) return false;
  const bool named = a.op == Op::input || a.op == Op::param || a.op == Op::state || a.op == Op::random;
  return named || a.attr == b.attr;
}

bool do_the_same(const StageProgram& a, const StageProgram& b) {
  const Graph &g = a.local.graph, &h = b.local.graph;
  const auto value = [](const DeviceValue& v) { return v.node; };
  return std::ranges::equal(g.nodes, h.nodes, [](const Node& m, const Node& n) { return do_the_same(m, n); }) &&
         std::ranges::equal(a.local.outputs, b.local.outputs, {}, value, value) &&
         std::ranges::equal(a.local.updates, b.local.updates, {}, value, value) &&
         std::ranges::equal(a.local.gradients, b.local.gradients, {}, value, value) && a.local.loss.node == b.local.loss.node;
}

// Launches of a stage for a microbatch, and of its collectives what is not hidden behind them.
struct StageStep {
  MeshStep step;
  StageTimes times;
  double compute_s = 0, exposed_s = 0;  // of a whole step
};

class Stages {
 public:
  Stages(MeshReport& report, const StagedDevice& staged, const PlanStep& plan, const ProcessBytes& process_bytes, const Device* device)
      : report_(report), staged_(staged), plan_(plan), process_bytes_(process_bytes), device_(device) {}

  void run() {
    PipelineReport& pipeline = report_.pipeline.emplace();
    const Graph& whole = staged_.whole.graph;
    pipeline.axis = whole.mesh.axes[static_cast<size_t>(whole.mesh.stages.over)].name, pipeline.loop = whole.mesh.stages.loop;
    pipeline.microbatches = staged_.microbatches, pipeline.shown = static_cast<size_t>(staged_.shown);
    for (int64_t s = 0; s < staged_.stages(); ++s) pipeline.stages.push_back(described(s));
    if (!plan_) return;
    for (size_t s = 0; s < pipeline.stages.size(); ++s) add_step(s);
    for (size_t s = 0; s < steps_.size(); ++s)
      pipeline.stages[s].peak = amount_here(Rational(peak(s))), pipeline.stages[s].microbatch_bytes = further_bytes(s);
    show_memory();
    const auto has_times = [](const StageStep& s) { return s.step.line.has_value(); };
    if (report_.send_s.size() == staged_.cut.sends.size() && std::ranges::all_of(steps_, has_times)) tell_times();
  }

 private:
  StageReport described(int64_t s) const {
    StageReport stage;
    const PipelineStages& stages = staged_.whole.graph.mesh.stages;
    const int64_t iterations = staged_.dims.at(stages.loop);
    stage.first = first_iteration(s, staged_.stages(), iterations);
    stage.iterations = first_iteration(s + 1, staged_.stages(), iterations) - stage.first;
    stage.held = staged_.whole.graph.loss.valid() ? microbatches_held(s, staged_.stages(), staged_.microbatches) : 1;
    stage.flops = amount_here(staged_.flops[static_cast<size_t>(s)]);
    stage.parameters = amount_here(staged_.declared_bytes(static_cast<int>(s), [](const Node& node) { return node.op == Op::param; }));
    return stage;
  }

  // Stages that do the same are planned once, but where those that hold more microbatches make values again for it.
  void add_step(size_t s) {
    const StageProgram& program = staged_.cut.stages[s];
    std::vector<double> seconds;
    if (!report_.collective_s.empty() || staged_.whole.collectives.empty())
      for (const size_t number : program.numbers) seconds.push_back(report_.collective_s[number]);
    for (size_t other = 0; other < s; ++other)
      if (steps_[other].step.recomputed.empty() && do_the_same(staged_.cut.stages[other], program)) return steps_.push_back(steps_[other]);
    StageStep stage;
    const auto held = [&](int64_t kept) { return others(s, kept); };
    stage.step = device_step(program.local, staged_.given, plan_, process_bytes_, held, device_, seconds);
    if (stage.step.line) add_times(stage, program);
    steps_.push_back(std::move(stage));
  }

  void add_times(StageStep& stage, const StageProgram& program) const {
    const PhaseSeconds& seconds = stage.step.seconds;
    stage.times = {seconds.forward, seconds.backward, seconds.weights, seconds.update};
    stage.compute_s = seconds.weights + seconds.update + microbatches() * (seconds.forward + seconds.backward);
    for (size_t c = 0; c < program.numbers.size(); ++c) {
      const NodeId whole = staged_.whole.collectives[program.numbers[c]];
      const Phase phase = staged_.whole.graph[whole].origin.phase;
      const bool once = staged_.moves_once(whole);
      // In time it stands where what waits for it does: weights before the first forward, gradients behind the last backward.
      double& where =
          phase == Phase::forward ? (once ? stage.times.begin : stage.times.forward) : (once ? stage.times.end : stage.times.backward);
      where += stage.step.line->exposed_s[c];
      stage.exposed_s += stage.step.line->exposed_s[c] * static_cast<double>(staged_.times_moved(whole));
    }
  }

  double microbatches() const { return static_cast<double>(staged_.microbatches); }

  // What came from other stages is kept as long as what a stage keeps of its own: a backward reads the activations that its forward got.
  int64_t received(size_t s) const {
    Rational bytes(0);
    for (const StageSend& send : staged_.cut.sends)
      if (send.to == static_cast<int>(s) && !staged_.moves_once(send.value)) bytes = bytes + staged_.bytes_of(send.value);
    return static_cast<int64_t>(bytes.to_double());
  }
  // Gradients that are added up before devices share them out lie whole till then.
  int64_t sums(size_t s) const {
    if (staged_.microbatches == 1) return 0;
    Rational bytes(0);
    for (const size_t number : staged_.cut.stages[s].numbers) {
      const NodeId id = staged_.whole.collectives[number];
      const Node& node = staged_.whole.graph[id];
      if (node.op != Op::reduce_scatter || !staged_.places.for_update[id.index] || !staged_.moves_once(id)) continue;
      bytes = bytes + staged_.bytes_of(node.operands[0]) - staged_.bytes_of(id);
    }
    return static_cast<int64_t>(bytes.to_double());
  }
  int64_t further(size_t s) const { return report_.pipeline->stages[s].held - 1; }
  int64_t further_bytes(size_t s) const { return received(s) + steps_[s].step.values_kept + steps_[s].step.kept; }
  int64_t others(size_t s, int64_t kept) const { return further(s) * (received(s) + kept) + sums(s); }
  int64_t values(size_t s) const { return steps_[s].step.values + others(s, steps_[s].step.values_kept); }
  int64_t working(size_t s) const { return steps_[s].step.working + further(s) * steps_[s].step.kept; }
  int64_t peak(size_t s) const { return values(s) + working(s) + steps_[s].step.process; }

  void show_memory() {
    const size_t s = report_.pipeline->shown;
    const MeshStep& step = steps_[s].step;
    const Rational each = step.executed - step.executed_once;
    report_.step = DeviceStepReport{amount_here(step.executed_once + each * Rational(staged_.microbatches)),
                                    amount_here(Rational(values(s))),
                                    amount_here(Rational(working(s))),
                                    amount_here(Rational(step.process)),
                                    amount_here(Rational(peak(s))),
                                    step.recomputed};
  }

  void tell_times() {
    std::vector<StageTimes> times;
    for (const StageStep& stage : steps_) times.push_back(stage.times);
    PipelineReport& pipeline = *report_.pipeline;
    pipeline.links = links();
    const PipelineTimeline line = pipeline_timeline(times, pipeline.links, staged_.microbatches);
    for (size_t s = 0; s < steps_.size(); ++s) {
      StageReport& stage = pipeline.stages[s];
      stage.forward_s = times[s].forward, stage.backward_s = times[s].backward;
      stage.begin_s = times[s].begin, stage.end_s = times[s].end, stage.idle_s = line.idle_s[s];
      stage.compute_s = steps_[s].compute_s, stage.exposed_s = steps_[s].exposed_s;
    }
    const StageStep& shown = steps_[pipeline.shown];
    report_.compute_s = shown.compute_s, report_.exposed_s = shown.exposed_s, report_.idle_s = line.idle_s[pipeline.shown];
    const StageProgram& program = staged_.cut.stages[pipeline.shown];
    for (size_t c = 0; c < program.numbers.size(); ++c) {
      const size_t number = program.numbers[c];
      CommunicationRow& row = report_.rows[report_.row_of[number]];
      const auto often = static_cast<double>(staged_.times_moved(staged_.whole.collectives[number]));
      row.exposed_s = row.exposed_s.value_or(0) + shown.step.line->exposed_s[c] * often;
    }
  }

  // What goes between two stages for a microbatch, one value after the other.
  std::vector<StageLink> links() const {
    std::vector<StageLink> links;
    for (size_t i = 0; i < staged_.cut.sends.size(); ++i) {
      const StageSend& send = staged_.cut.sends[i];
      if (staged_.moves_once(send.value)) continue;
      const auto known = std::ranges::find_if(links, [&](const StageLink& l) { return l.from == send.from && l.to == send.to; });
      if (known == links.end())
        links.push_back({send.from, send.to, report_.send_s[i]});
      else
        known->seconds += report_.send_s[i];
    }
    return links;
  }

  MeshReport& report_;
  const StagedDevice& staged_;
  const PlanStep& plan_;
  const ProcessBytes& process_bytes_;
  const Device* device_;
  std::vector<StageStep> steps_;  // by stage
};

}  // namespace

void tell_stages(MeshReport& report, const StagedDevice& staged, const PlanStep& plan, const ProcessBytes& process_bytes,
                 const Device* device) {
  Stages(report, staged, plan, process_bytes, device).run();
}

}  // namespace einc
