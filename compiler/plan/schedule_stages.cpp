// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/schedule_stages.h"

#include <algorithm>
#include <map>

#include "compiler/context/partition_for_mesh.h"
#include "compiler/report/stage_steps.h"

namespace einc {
namespace {

// The sample's iterations are cut into stages twice: evenly, and with one more of them on the stage between.
constexpr int kFirst = 0, kBetween = 1, kLast = 3;  // stages of the first cut

// What a stage of the sample does in a step; times are of a microbatch, too.
struct SampleStage {
  StageTimes times;
  double work = 0, exposed = 0;
  double bytes_held = 0, microbatch_bytes = 0;  // with one microbatch, and of each further one
  double process_bytes = 0;                     // besides
  Rational bytes, flops;
  std::vector<SentKind> sent;
};

// All stages of the sample, by one way to plan them.
struct SampleStages {
  std::vector<SampleStage> even;
  SampleStage longer;
  std::vector<StageLink> links;  // of the first cut
};

class StageScheduler {
 public:
  StageScheduler(const StageSample& sample, const MeshWay& way, int64_t batch, int64_t iterations)
      : sample_(sample), way_(way), stages_(way.stages->count), batch_(batch), iterations_(iterations) {}

  std::optional<ScheduledWay> run();

 private:
  int like(int64_t s) const { return s == 0 ? kFirst : s + 1 == stages_ ? kLast : kBetween; }
  StageShare share(int64_t s) const { return share_of(*way_.stages, s, iterations_, way_.micro_batches); }

  // Of a stage with all of its iterations: each further one adds as much as the one more that the longer stage has.
  template <class Of>
  auto whole(const SampleStages& sample, int64_t s, Of of) const {
    const decltype(of(sample.longer)) more(static_cast<int64_t>(share(s).iterations) - sample_.iterations);
    return of(sample.even[static_cast<size_t>(like(s))]) + more * (of(sample.longer) - of(sample.even[kBetween]));
  }
  StageTimes times_of(const SampleStages& sample, int64_t s) const {
    const auto seconds = [&](double StageTimes::*part) {
      return std::max(0.0, whole(sample, s, [&](const SampleStage& stage) { return stage.times.*part; }));
    };
    return {seconds(&StageTimes::forward), seconds(&StageTimes::backward), seconds(&StageTimes::begin), seconds(&StageTimes::end)};
  }

  std::optional<SampleStages> measure(const PlanStep& plan) const {
    SampleStages sample;
    const int64_t n = sample_.iterations, evenly[] = {0, n, 2 * n, 3 * n}, with_longer[] = {0, n, 2 * n + 1};
    auto staged = staged_device(sample_.program.partitioned, sample_.program.given, evenly);
    if (!staged) return std::nullopt;
    repeat_sends(*staged);
    const auto report = tell(*staged, {kFirst, kBetween, kLast}, plan, sample.even);
    auto longer = report ? staged_device(sample_.program.partitioned, sample_.program.given, with_longer) : std::nullopt;
    std::vector<SampleStage> stages;
    if (!longer || !tell(*longer, {kBetween}, plan, stages)) return std::nullopt;
    sample.longer = stages[kBetween];
    sample.links = report->pipeline->links;
    return sample;
  }

  // Stages of a cut, those that are `wanted`. Nothing: they have no times.
  std::optional<MeshReport> tell(StagedDevice& staged, std::initializer_list<int> wanted, const PlanStep& plan,
                                 std::vector<SampleStage>& stages) const {
    MeshReport report;
    stages.resize(static_cast<size_t>(staged.stages()));
    for (const int s : wanted) {
      staged.shown = s;
      report =
          mesh_report(sample_.program.graph, sample_.program.partitioned, staged.whole, sample_.program.given, &sample_.device, &staged);
      if (!report.time_s) return std::nullopt;
      SampleStage& stage = stages[static_cast<size_t>(s)];
      stage.bytes = *report.bytes.value, stage.flops = staged.flops[static_cast<size_t>(s)], stage.sent = sent_kinds(report);
    }
    const PartitionedProgram& program = sample_.program;
    const ProcessBytes process = sample_.plans.process ? sample_.plans.process(program.graph, program.given) : ProcessBytes{};
    tell_stages(report, staged, plan, process, &sample_.device);
    for (const int s : wanted) {
      const StageReport& told = report.pipeline->stages[static_cast<size_t>(s)];
      if (!told.idle_s) return std::nullopt;
      SampleStage& stage = stages[static_cast<size_t>(s)];
      stage.times = {*told.forward_s, *told.backward_s, *told.begin_s, *told.end_s};
      stage.work = *told.compute_s, stage.exposed = *told.exposed_s;
      stage.microbatch_bytes = static_cast<double>(told.microbatch_bytes);
      stage.process_bytes = static_cast<double>(told.process_bytes);
      stage.bytes_held = told.peak.value->to_double() - stage.process_bytes - static_cast<double>(told.held - 1) * stage.microbatch_bytes;
    }
    return report;
  }

  // What the first or the last stage sends to all others goes to as many as there are. A microbatch's goes to neighbours.
  void repeat_sends(StagedDevice& staged) const {
    std::map<uint32_t, std::vector<StageSend>> by_value;
    for (const StageSend& send : staged.cut.sends) by_value[send.value.index].push_back(send);
    staged.cut.sends.clear();
    const auto others = static_cast<size_t>(stages_ - 1);
    for (auto& [value, sends] : by_value) {
      const bool from_end = !sends[0].of_microbatch() && (sends[0].from == kFirst || sends[0].from == kLast);
      if (from_end) sends.resize(sends.size() == kLast ? others : std::min(sends.size(), others), sends[0]);
      staged.cut.sends.insert(staged.cut.sends.end(), sends.begin(), sends.end());
    }
  }

  // Of a stage, with its microbatches.
  HeldBytes held(const SampleStages& sample, int64_t s, const HeldBytes& by_formula) const {
    HeldBytes held = by_formula.planned(whole(sample, s, [&](const SampleStage& stage) {
      return stage.bytes_held + static_cast<double>(share(s).held - 1) * stage.microbatch_bytes;
    }));
    held.process = sample.even[static_cast<size_t>(like(s))].process_bytes;
    if (s == 0 && sample_.device.target == DeviceTarget::cpu) held.process += sample_.further;  // it puts them all together
    return held;
  }

  // Fills what is held, and what is made again of `as_is_` as a share of `least_`, by stage.
  bool fit(ScheduledWay& scheduled, std::vector<double>& shares) {
    const double usable = sample_.device.usable_bytes();
    WaySizes sizes = sizes_of(way_, batch_, iterations_).front();
    std::vector<HeldRange> stages;
    for (int64_t s = 0; s < stages_; ++s) {
      sizes.stage = share(s);
      HeldRange& range = stages.emplace_back(sample_.formulas.held(sizes));
      range.as_is = held(as_is_, s, range.as_is);
    }
    least_ = as_is_;
    if (std::ranges::any_of(stages, [&](const HeldRange& range) { return range.as_is.total() * sample_.margin > usable; }))
      if (auto least = measure(sample_.plans.least)) least_ = std::move(*least);
    for (int64_t s = 0; s < stages_; ++s) {
      HeldRange& range = stages[static_cast<size_t>(s)];
      range.least = held(least_, s, range.least);
      const auto step = fitted(range, usable, sample_.margin);
      scheduled.fits = scheduled.fits && step;
      shares.push_back(step ? step->share : 1);
      const HeldBytes& takes = step ? step->held : range.least;
      if (s == 0 || takes.total() > scheduled.held.total()) scheduled.held = takes, scheduled.fullest = s;
    }
    return scheduled.fits;
  }

  void add_sent(ScheduledWay& scheduled) const {
    for (const SampleStage* stage : {&as_is_.even[static_cast<size_t>(like(scheduled.shown))], &as_is_.longer})
      for (const SentKind& kind : stage->sent) of_kind(scheduled.sent, kind);
    for (SentKind& kind : scheduled.sent) {
      const auto of = [&](const SampleStage& stage) {
        std::vector<SentKind> sent = stage.sent;
        return of_kind(sent, {kind.kind, kind.axis, kind.link, Rational(0), 0});
      };
      kind.bytes = whole(as_is_, scheduled.shown, [&](const SampleStage& stage) { return of(stage).bytes; });
      kind.seconds = whole(as_is_, scheduled.shown, [&](const SampleStage& stage) { return of(stage).seconds; });
      scheduled.seconds.sent += kind.seconds;
    }
    std::erase_if(scheduled.sent, [](const SentKind& kind) { return kind.bytes == Rational(0); });
    std::ranges::stable_sort(scheduled.sent, std::ranges::greater{}, &SentKind::seconds);
  }

  // What goes between neighbours goes between all of them.
  std::vector<StageLink> links() const {
    const int last = static_cast<int>(stages_) - 1;
    std::vector<StageLink> links;
    for (const StageLink& link : as_is_.links) {
      const bool up = link.from < link.to;
      const auto add = [&](int lower, int upper) { links.push_back({up ? lower : upper, up ? upper : lower, link.seconds}); };
      const int lower = std::min(link.from, link.to), upper = std::max(link.from, link.to);
      if (lower == kFirst && upper == kLast) add(0, last);
      if (lower == kFirst && upper == kBetween) add(0, 1);
      if (lower == kBetween && upper < kLast)
        for (int s = 1; s + 1 < last; ++s) add(s, s + 1);
      if (lower > kBetween && upper == kLast && last > 1) add(last - 1, last);
    }
    return links;
  }

  const StageSample& sample_;
  const MeshWay& way_;
  const int64_t stages_, batch_, iterations_;
  SampleStages as_is_, least_;
};

std::optional<ScheduledWay> StageScheduler::run() {
  auto measured = measure(sample_.plans.as_is);
  if (!measured) return std::nullopt;
  as_is_ = std::move(*measured);
  ScheduledWay scheduled{way_, {}, {}, 0, {}, Rational(0), Rational(0)};
  std::vector<double> shares;
  if (!fit(scheduled, shares)) return scheduled;
  const auto microbatches = static_cast<double>(way_.micro_batches);
  std::vector<StageTimes> times;
  std::vector<double> again;
  for (int64_t s = 0; s < stages_; ++s) {
    times.push_back(times_of(as_is_, s));
    const double share = shares[static_cast<size_t>(s)];
    again.push_back(share > 0 ? share * std::max(0.0, times_of(least_, s).backward - times.back().backward) : 0);
    times.back().backward += again.back();
    scheduled.again = std::max(scheduled.again, microbatches * again.back());
    scheduled.way.recomputes = scheduled.way.recomputes || share > 0;
    const Rational flops = whole(as_is_, s, [](const SampleStage& stage) { return stage.flops; });
    if (s == 0 || scheduled.flops < flops) scheduled.flops = flops, scheduled.shown = s;
  }
  const int64_t shown = scheduled.shown;
  scheduled.bytes = whole(as_is_, shown, [](const SampleStage& stage) { return stage.bytes; });
  scheduled.seconds.work =
      whole(as_is_, shown, [](const SampleStage& stage) { return stage.work; }) + microbatches * again[static_cast<size_t>(shown)];
  scheduled.seconds.exposed = std::max(0.0, whole(as_is_, shown, [](const SampleStage& stage) { return stage.exposed; }));
  add_sent(scheduled);
  scheduled.seconds.idle = pipeline_timeline(times, links(), way_.micro_batches).idle_s[static_cast<size_t>(shown)];
  return scheduled;
}

}  // namespace

std::optional<ScheduledWay> schedule_stages(const StageSample& sample, const MeshWay& way, int64_t batch, int64_t iterations) {
  return StageScheduler(sample, way, batch, iterations).run();
}

}  // namespace einc
