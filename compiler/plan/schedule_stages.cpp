// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/schedule_stages.h"

#include <algorithm>
#include <map>

#include "compiler/context/partition_for_mesh.h"
#include "compiler/report/stage_steps.h"

namespace einc {
namespace {

// The sample's iterations are cut into stages twice: one by one, and with two of them on the stage between.
constexpr int64_t kOneByOne[] = {0, 1, 2, 3}, kLonger[] = {0, 1, 3};
constexpr int kFirst = 0, kBetween = 1, kLast = 3;  // stages of the first cut

// What a stage of the sample does in a step; times are of a microbatch, too.
struct SampleStage {
  StageTimes times;
  double work = 0, exposed = 0;
  double bytes_held = 0, microbatch_bytes = 0;  // with one microbatch, and of each further one
  Rational bytes, flops;
  std::vector<SentKind> sent;
};

class StageScheduler {
 public:
  StageScheduler(const StageSample& sample, const MeshWay& way, int64_t batch, int64_t iterations)
      : sample_(sample), way_(way), stages_(way.stages->count), batch_(batch), iterations_(iterations) {}

  std::optional<ScheduledWay> run();

 private:
  const SampleStage& one_like(int64_t s) const { return one_by_one_[s == 0 ? kFirst : s + 1 == stages_ ? kLast : kBetween]; }
  StageShare share(int64_t s) const { return share_of(*way_.stages, s, iterations_, way_.micro_batches); }

  // Of a stage with all of its iterations: each further one adds as much as the one more that the longer stage has.
  template <class Of>
  auto whole(int64_t s, Of of) const {
    const decltype(of(longer_)) more(static_cast<int64_t>(share(s).iterations) - 1);
    return of(one_like(s)) + more * (of(longer_) - of(one_by_one_[kBetween]));
  }
  StageTimes times_of(int64_t s) const {
    const auto seconds = [&](double StageTimes::*part) {
      return std::max(0.0, whole(s, [&](const SampleStage& stage) { return stage.times.*part; }));
    };
    return {seconds(&StageTimes::forward), seconds(&StageTimes::backward), seconds(&StageTimes::begin), seconds(&StageTimes::end)};
  }

  bool measure() {
    auto staged = staged_device(sample_.program.partitioned, sample_.program.given, kOneByOne);
    if (!staged) return false;
    repeat_sends(*staged);
    const auto report = tell(*staged, {kFirst, kBetween, kLast}, one_by_one_);
    auto longer = report ? staged_device(sample_.program.partitioned, sample_.program.given, kLonger) : std::nullopt;
    std::vector<SampleStage> stages;
    if (!longer || !tell(*longer, {kBetween}, stages)) return false;
    longer_ = stages[kBetween];
    links_ = report->pipeline->links;
    return true;
  }

  // Stages of a cut, those that are `wanted`. Nothing: they have no times.
  std::optional<MeshReport> tell(StagedDevice& staged, std::initializer_list<int> wanted, std::vector<SampleStage>& stages) const {
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
    tell_stages(report, staged, sample_.plan, {}, &sample_.device);
    for (const int s : wanted) {
      const StageReport& told = report.pipeline->stages[static_cast<size_t>(s)];
      if (!told.idle_s) return std::nullopt;
      SampleStage& stage = stages[static_cast<size_t>(s)];
      stage.times = {*told.forward_s, *told.backward_s, *told.begin_s, *told.end_s};
      stage.work = *told.compute_s, stage.exposed = *told.exposed_s;
      stage.microbatch_bytes = static_cast<double>(told.microbatch_bytes);
      stage.bytes_held = told.peak.value->to_double() - static_cast<double>(told.held - 1) * stage.microbatch_bytes;
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

  bool fit(ScheduledWay& scheduled, std::vector<double>& again) const {
    WaySizes sizes = sizes_of(way_, batch_, iterations_).front();
    for (int64_t s = 0; s < stages_; ++s) {
      sizes.stage = share(s);
      const double planned = whole(s, [&](const SampleStage& stage) {
        return stage.bytes_held + static_cast<double>(sizes.stage.held - 1) * stage.microbatch_bytes;
      });
      const auto fitted = sample_.formulas.fitted(sample_.formulas.held(sizes).planned(planned), sizes, sample_.device.usable_bytes());
      if (!fitted) return false;
      again.push_back(fitted->again);
      if (s == 0 || fitted->held.total() > scheduled.held.total()) scheduled.held = fitted->held, scheduled.fullest = s;
      scheduled.way.recomputes = scheduled.way.recomputes || fitted->again > 0;
    }
    return true;
  }

  void add_sent(ScheduledWay& scheduled) const {
    for (const SampleStage* stage : {&one_like(scheduled.shown), &longer_})
      for (const SentKind& kind : stage->sent) of_kind(scheduled.sent, kind);
    for (SentKind& kind : scheduled.sent) {
      const auto of = [&](const SampleStage& stage) {
        std::vector<SentKind> sent = stage.sent;
        return of_kind(sent, {kind.kind, kind.axis, kind.link, Rational(0), 0});
      };
      kind.bytes = whole(scheduled.shown, [&](const SampleStage& stage) { return of(stage).bytes; });
      kind.seconds = whole(scheduled.shown, [&](const SampleStage& stage) { return of(stage).seconds; });
      scheduled.seconds.sent += kind.seconds;
    }
    std::erase_if(scheduled.sent, [](const SentKind& kind) { return kind.bytes == Rational(0); });
    std::ranges::stable_sort(scheduled.sent, std::ranges::greater{}, &SentKind::seconds);
  }

  // What goes between neighbours goes between all of them.
  std::vector<StageLink> links() const {
    const int last = static_cast<int>(stages_) - 1;
    std::vector<StageLink> links;
    for (const StageLink& link : links_) {
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
  std::vector<SampleStage> one_by_one_;
  SampleStage longer_;
  std::vector<StageLink> links_;  // of the first cut
};

std::optional<ScheduledWay> StageScheduler::run() {
  if (!measure()) return std::nullopt;
  ScheduledWay scheduled{way_, {}, {}, 0, {}, Rational(0), Rational(0)};
  std::vector<double> again;
  if (!fit(scheduled, again)) {
    scheduled.fits = false;
    return scheduled;
  }
  const auto microbatches = static_cast<double>(way_.micro_batches);
  std::vector<StageTimes> times;
  for (int64_t s = 0; s < stages_; ++s) {
    times.push_back(times_of(s));
    times.back().backward += again[static_cast<size_t>(s)] / microbatches;
    const Rational flops = whole(s, [](const SampleStage& stage) { return stage.flops; });
    if (s == 0 || scheduled.flops < flops) scheduled.flops = flops, scheduled.shown = s;
  }
  const int64_t shown = scheduled.shown;
  scheduled.again = *std::ranges::max_element(again);
  scheduled.bytes = whole(shown, [](const SampleStage& stage) { return stage.bytes; });
  scheduled.seconds.work = whole(shown, [](const SampleStage& stage) { return stage.work; }) + again[static_cast<size_t>(shown)];
  scheduled.seconds.exposed = std::max(0.0, whole(shown, [](const SampleStage& stage) { return stage.exposed; }));
  add_sent(scheduled);
  scheduled.seconds.idle = pipeline_timeline(times, links(), way_.micro_batches).idle_s[static_cast<size_t>(shown)];
  return scheduled;
}

}  // namespace

std::optional<ScheduledWay> schedule_stages(const StageSample& sample, const MeshWay& way, int64_t batch, int64_t iterations) {
  return StageScheduler(sample, way, batch, iterations).run();
}

}  // namespace einc
