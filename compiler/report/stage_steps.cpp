// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/stage_steps.h"

#include <algorithm>
#include <map>

#include "compiler/partition/pipeline_timeline.h"
#include "compiler/partition/stage_meetings.h"

namespace einc {
namespace {

constexpr int kEachMicrobatch = -1;  // in place of a round

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
         std::ranges::equal(a.local.gradients, b.local.gradients, {}, value, value) &&
         std::ranges::equal(a.local.given_gradients, b.local.given_gradients, {}, &Update::value, &Update::value) &&
         a.local.loss.node == b.local.loss.node && a.local.stores == b.local.stores;
}

// Rounds in which a stage has something to do: of what goes from stage to stage behind the microbatches, each has its own.
std::vector<size_t> busy_rounds(const std::vector<StageProgram>& rounds) {
  std::vector<size_t> busy;
  for (size_t r = 0; r < rounds.size(); ++r)
    if (!rounds[r].is_empty()) busy.push_back(r);
  return busy;
}

bool do_the_same(const std::vector<StageProgram>& a, const std::vector<StageProgram>& b) {
  return std::ranges::equal(busy_rounds(a), busy_rounds(b), [&](size_t x, size_t y) {
    // Of launches behind the microbatches all rounds are told together; of collectives each, where it is.
    const bool alike = x == y || (x > kMicrobatchRound && y > kMicrobatchRound && a[x].numbers.empty());
    return alike && do_the_same(a[x], b[y]);
  });
}

struct StageStep {
  std::vector<MeshStep> rounds;         // as place_stages.h has them
  StageTimes times;                     // with what of its collectives is not hidden
  double compute_s = 0, exposed_s = 0;  // of a whole step

  const MeshStep& each() const { return rounds[kMicrobatchRound]; }
  int64_t of_microbatch() const { return each().kept_values + each().kept; }
  int64_t values() const {
    int64_t bytes = 0;
    for (const MeshStep& round : rounds) bytes += round.values;
    return bytes;
  }
  // Rounds work one after another in the same memory.
  int64_t working() const {
    int64_t most = 0;
    for (const MeshStep& round : rounds) most = std::max(most, round.working);
    return most;
  }
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
    exchanged_ = exchanged_bytes();
    for (size_t s = 0; s < pipeline.stages.size(); ++s) add_step(s);
    for (size_t s = 0; s < steps_.size(); ++s) {
      StageReport& stage = pipeline.stages[s];
      stage.peak = amount_here(Rational(peak(s)));
      stage.microbatch_bytes = further_bytes(s), stage.process_bytes = steps_[s].each().process;
    }
    show_memory();
    const auto has_times = [](const StageStep& s) {
      return std::ranges::all_of(s.rounds, [](const MeshStep& step) { return step.line.has_value(); });
    };
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

  // Stages that do the same are planned once, but the first, whose process also puts whole tensors together, and where those that hold more
  // microbatches make values again for it.
  void add_step(size_t s) {
    const std::vector<StageProgram>& programs = staged_.cut.stages[s];
    for (size_t other = 1; other < s; ++other)
      if (steps_[other].each().recomputed.empty() && exchanged_[other] == exchanged_[s] && do_the_same(staged_.cut.stages[other], programs))
        return steps_.push_back(steps_[other]);
    StageStep stage;
    stage.rounds.resize(programs.size(), nothing());
    const auto plan = [&](size_t r, const std::optional<HeldBesides>& held) {
      return device_step(programs[r].local, staged_.given, plan_, process_bytes_, {s == 0, exchanged_[s].sent, exchanged_[s].received},
                         held, device_, times_of_collectives(programs[r]));
    };
    HeldBesides besides;
    for (const size_t r : busy_rounds(programs))
      if (r != kMicrobatchRound) stage.rounds[r] = plan(r, {}), besides.process = std::max(besides.process, stage.rounds[r].process);
    besides.values = stage.values(), besides.working = stage.working(), besides.further = further(s);
    MeshStep& each = stage.rounds[kMicrobatchRound];
    each = plan(kMicrobatchRound, besides);
    each.process = std::max(each.process, besides.process);
    if (std::ranges::all_of(stage.rounds, [](const MeshStep& step) { return step.line.has_value(); })) add_times(stage, programs);
    steps_.push_back(std::move(stage));
  }

  // A round without work has no plan: a pipeline of 64 stages has 4,000 of them.
  MeshStep nothing() const {
    MeshStep step;
    if (device_) step.line.emplace();
    return step;
  }

  struct Exchanged {
    int64_t sent = 0, received = 0;
    friend bool operator==(const Exchanged&, const Exchanged&) = default;
  };
  // By stage: the most that it sends in one exchange with others, and the most that it gets: what goes up, what goes down, and what later
  // rounds read of one that is over. A process has room for both (runtime/mesh/staged_devices).
  std::vector<Exchanged> exchanged_bytes() const {
    using Sums = std::map<std::pair<int, bool>, int64_t>;  // by the round that makes it, and whether it goes up
    std::vector<Sums> sent(staged_.cut.stages.size()), received(sent.size());
    for (const StageSend& send : staged_.cut.sends) {
      const std::pair key(send.of_microbatch() ? kEachMicrobatch : send.made, send.of_microbatch() && send.from < send.to);
      const auto bytes = static_cast<int64_t>(staged_.bytes_of(send.value).to_double());
      sent[static_cast<size_t>(send.from)][key] += bytes;
      received[static_cast<size_t>(send.to)][key] += bytes;
    }
    const auto most = [](const Sums& sums) {
      int64_t bytes = 0;
      for (const auto& [key, sum] : sums) bytes = std::max(bytes, sum);
      return bytes;
    };
    std::vector<Exchanged> exchanged;
    for (size_t s = 0; s < sent.size(); ++s) exchanged.push_back({most(sent[s]), most(received[s])});
    return exchanged;
  }

  // What microbatches of a stage do with one another takes no link; what is sent to other stages is the pipeline's.
  std::vector<CollectiveTime> times_of_collectives(const StageProgram& program) const {
    std::vector<CollectiveTime> times;
    if (report_.collective_times.empty() && !staged_.whole.collectives.empty()) return times;
    for (const size_t number : program.numbers) times.push_back(report_.collective_times[number]);
    times.resize(program.local.collectives.size());
    return times;
  }

  void add_times(StageStep& stage, const std::vector<StageProgram>& programs) const {
    const PhaseSeconds& seconds = stage.each().seconds;
    const MovedSums sums = moved_sums(programs[kMicrobatchRound]);
    stage.times = {seconds.forward, seconds.backward + sums.each_s, 0, sums.once_s};
    stage.compute_s = microbatches() * (stage.times.forward + stage.times.backward) + sums.once_s;
    for (size_t r = 0; r < programs.size(); ++r) {
      const bool of_each = r == kMicrobatchRound;
      const double often = of_each ? microbatches() : 1;
      double& once = r == kWeightsRound ? stage.times.begin : stage.times.end;
      if (!of_each) {
        const double work = stage.rounds[r].seconds.forward + stage.rounds[r].seconds.backward;
        once += work, stage.compute_s += work;
      }
      for (size_t c = 0; c < programs[r].numbers.size(); ++c) {
        const double exposed = stage.rounds[r].line->exposed_s[c];
        const bool forward = staged_.whole.graph[staged_.whole.collectives[programs[r].numbers[c]]].origin.phase == Phase::forward;
        (!of_each ? once : forward ? stage.times.forward : stage.times.backward) += exposed;
        stage.exposed_s += exposed * often;
      }
    }
  }

  // Of sums over microbatches, what no launch does.
  struct MovedSums {
    double each_s = 0, once_s = 0;
    Rational each, once;  // FLOPs
  };
  MovedSums moved_sums(const StageProgram& program) const {
    MovedSums moved;
    for (const auto& [whole, sum] : program.sums) {
      const Rational bytes = staged_.bytes_of(NodeId{whole}), elements = bytes / Rational(bytes_of(program.local.graph.type(sum).dtype));
      const double pass_s = device_ ? bytes.to_double() / device_->bandwidth : 0;
      moved.once = moved.once + elements, moved.once_s += 3 * pass_s;  // made zero; read and written for the mean
      if (!is_microbatch_sum(program.local.graph[sum])) continue;
      moved.each = moved.each + elements, moved.each_s += 3 * pass_s;  // a term and the sum so far are read, and the sum is written
    }
    return moved;
  }

  double microbatches() const { return static_cast<double>(staged_.microbatches); }

  int64_t further(size_t s) const { return report_.pipeline->stages[s].held - 1; }
  int64_t further_bytes(size_t s) const { return steps_[s].of_microbatch(); }
  int64_t values(size_t s) const { return steps_[s].values() + further(s) * steps_[s].each().kept_values; }
  int64_t working(size_t s) const { return steps_[s].working() + further(s) * steps_[s].each().kept; }
  int64_t peak(size_t s) const { return values(s) + working(s) + steps_[s].each().process; }

  void show_memory() {
    const size_t s = report_.pipeline->shown;
    const StageStep& stage = steps_[s];
    Rational executed(0);
    for (size_t r = 0; r < stage.rounds.size(); ++r) {
      const MovedSums sums = moved_sums(staged_.cut.stages[s][r]);
      executed = executed + (stage.rounds[r].executed + sums.each) * Rational(r == kMicrobatchRound ? staged_.microbatches : 1) + sums.once;
    }
    report_.step = DeviceStepReport{amount_here(executed),
                                    amount_here(Rational(values(s))),
                                    amount_here(Rational(working(s))),
                                    amount_here(Rational(stage.each().process)),
                                    amount_here(Rational(peak(s))),
                                    stage.each().recomputed};
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
    const std::vector<StageProgram>& programs = staged_.cut.stages[pipeline.shown];
    for (size_t r = 0; r < programs.size(); ++r)
      for (size_t c = 0; c < programs[r].numbers.size(); ++c) {
        const size_t number = programs[r].numbers[c];
        const auto often = static_cast<double>(staged_.times_carried_out(staged_.whole.collectives[number]));
        const DeviceTimeline& of_round = *shown.rounds[r].line;
        CommunicationRow& row = report_.rows[report_.row_of[number]];
        row.exposed_s = row.exposed_s.value_or(0) + of_round.exposed_s[c] * often;
        row.saved_s += of_round.saved_s[c] * often;
      }
  }

  // What goes between two stages for a microbatch, one value after the other.
  std::vector<StageLink> links() const {
    std::vector<StageLink> links;
    for (size_t i = 0; i < staged_.cut.sends.size(); ++i) {
      const StageSend& send = staged_.cut.sends[i];
      if (!send.of_microbatch()) continue;
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
  std::vector<StageStep> steps_;      // by stage
  std::vector<Exchanged> exchanged_;  // likewise
};

}  // namespace

void tell_stages(MeshReport& report, const StagedDevice& staged, const PlanStep& plan, const ProcessBytes& process_bytes,
                 const Device* device) {
  Stages(report, staged, plan, process_bytes, device).run();
}

}  // namespace einc
