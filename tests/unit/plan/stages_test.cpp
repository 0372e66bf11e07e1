// SPDX-License-Identifier: Apache-2.0
// Ways with stages: beside the report of the same program with their lines, and cases whose answer is known.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/context/partition_for_mesh.h"
#include "compiler/plan/schedule_stages.h"
#include "compiler/report/stage_steps.h"
#include "tests/support/sample.h"
#include "tests/unit/plan/planned.h"

namespace einc {
namespace {

MeshWay staged_way(int64_t stages, int64_t microbatches, std::vector<WayAxis> axes, Spread spread = Spread::nothing) {
  return {std::move(axes), spread, microbatches, WayStages{"stage", stages, Name("layers")}};
}

const WayAxis kData{"data", 2, {Name("batch")}, true};

// As a share: doctest's Approx takes small numbers for equal.
double off(double value, double wanted) { return std::abs(value - wanted) / std::abs(wanted); }

// The report of a program with a way's lines.
MeshReport report_of(const Planned& p, const MeshWay& way, const Scheduling& scheduling = {}) {
  PipelineOptions options = p.options;
  options.without_mesh = false;
  options.mesh = way.mesh(), options.shard = way.shard();
  const Compilation c = compile_again(p.whole, options, p.options.dims);
  REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
  const auto made = partition_for_mesh(*c.graph, p.options.dims);
  const auto& partitioned = std::get<Partitioned>(made);
  const auto staged = staged_device(partitioned, p.options.dims);
  REQUIRE(staged);
  MeshReport report = mesh_report(*c.graph, partitioned, staged->whole, p.options.dims, &p.device, &*staged);
  const ProcessBytes process = process_bytes_of(*c.graph, p.options.dims, p.device.target);
  tell_stages(report, *staged, plan_for_device(scheduling, p.device), process, &p.device);
  return report;
}

}  // namespace

TEST_CASE("stages in plans: lines") {
  const MeshWay way = staged_way(4, 16, {kData}, Spread::states);
  CHECK(way.mesh() == "stage=4,data=2");
  CHECK(way.shard() == "layers=stage(microbatches=16); batch=data; states=data");
  CHECK(way.lines() == std::vector<std::string>{"mesh stage = 4, data = 2", "shard layers over stage (microbatches = 16)",
                                                "shard batch over data", "shard states over data"});
  CHECK(!way.accumulates());
}

// The norm of all gradients goes from stage to stage, so that equal stages do their parts of it in rounds of their own: they are told
// alike, planned once or not.
TEST_CASE("stages in reports: equal stages are told alike, whichever round is theirs") {
  const Planned p({"gpt2.ein", "batch=8 seq=8 vocab=24 layers=12 heads=4 head=4", 12, 80e9});
  PipelineOptions options = p.options;
  const MeshWay way = staged_way(6, 4, {kData}, Spread::params);
  options.without_mesh = false;
  options.mesh = way.mesh(), options.shard = way.shard();
  const Compilation c = compile_again(p.whole, options, p.options.dims);
  REQUIRE(c.graph.has_value());
  const auto made = partition_for_mesh(*c.graph, p.options.dims);
  const auto& partitioned = std::get<Partitioned>(made);
  auto staged = staged_device(partitioned, p.options.dims);
  REQUIRE(staged);
  const auto is_busy = [&](size_t stage, size_t round) { return !staged->cut.stages[stage][round].is_empty(); };
  size_t apart = 0;  // rounds of one of two stages alone
  for (size_t r = 0; r < staged->cut.stages[1].size(); ++r) apart += is_busy(1, r) != is_busy(2, r);
  REQUIRE(apart >= 2);
  std::optional<double> first;
  for (const int s : {1, 2, 3}) {
    CAPTURE(s);
    staged->shown = s;
    MeshReport report = mesh_report(*c.graph, partitioned, staged->whole, p.options.dims, &p.device, &*staged);
    tell_stages(report, *staged, plan_for_device({}, p.device), {}, &p.device);
    double rows = 0;
    for (const CommunicationRow& row : report.rows) rows += row.exposed_s.value_or(0);
    REQUIRE(*report.exposed_s > 0);
    CHECK(off(rows, *report.exposed_s) < 1e-9);
    if (!first) first = *report.exposed_s;
    CHECK(off(*report.exposed_s, *first) < 1e-9);
  }
}

TEST_CASE("stages in plans: few iterations tell the report of all") {
  const Planned p({"gpt2.ein", "batch=16 seq=8 vocab=24 layers=7 heads=4 head=4", 8, 80e9});
  PlannedWays ways(p, 1);
  REQUIRE(ways.programs.loop() == Name("layers"));
  const WayPlans plans = ways.all_plans(p.device);
  const WayAxis model{"model", 2, {Name("heads"), Name("hidden"), Name("vocab")}, false};
  for (const MeshWay& way : {staged_way(2, 4, {}), staged_way(3, 8, {kData}), staged_way(4, 2, {kData, model}, Spread::states),
                             staged_way(7, 8, {kData}, Spread::gradients), staged_way(3, 4, {kData, model}, Spread::params)}) {
    CAPTURE(way.mesh());
    CAPTURE(way.shard());
    const auto scheduled = WayScheduler(ways.programs, ways.placed, plans, p.device).schedule(way);
    REQUIRE(scheduled.has_value());
    const MeshReport report = report_of(p, way);
    CHECK(scheduled->bytes == *report.bytes.value);
    CHECK(scheduled->flops == *report.flops.value);
    CHECK(static_cast<size_t>(scheduled->shown) == report.pipeline->shown);
    CHECK(off(scheduled->seconds.sent, *report.time_s) < 1e-9);
    // Updates of one shape are one launch up to a number: launches of so small a program do not grow evenly with its layers.
    CHECK(off(scheduled->seconds.work, *report.compute_s) < 0.03);
    CHECK(off(scheduled->seconds.total(), *report.step_time_s()) < 0.03);
    const StageReport& fullest = report.pipeline->stages[static_cast<size_t>(scheduled->fullest)];
    CHECK(off(scheduled->held.params, fullest.parameters.value->to_double()) < 1e-9);
    // Params that are spread are put together for two layers at a time, more than stages of the sample have.
    CHECK(off(scheduled->held.total(), fullest.peak.value->to_double()) < (way.spread == Spread::params ? 0.1 : 0.01));
    for (const StageReport& stage : report.pipeline->stages) CHECK(stage.peak.value->to_double() <= 1.01 * scheduled->held.total());
    if (scheduled->shown != scheduled->fullest) continue;
    CHECK(off(scheduled->held.states, report.optimizer_state.value->to_double()) < 1e-9);
  }
}

// What is on its way of whole layers, in stages of some iterations and without stages.
TEST_CASE("stages in plans: params and gradients that are spread") {
  const Planned p({"gpt2.ein", "batch=16 seq=32 vocab=24 layers=20 heads=4 head=16", 8, 80e9});
  PlannedWays ways(p, 1);
  for (const Spread spread : {Spread::gradients, Spread::params})
    for (const int64_t stages : {2, 4}) {
      if (kFewCases && stages == 2) continue;
      const MeshWay way = staged_way(stages, 8, {kData}, spread);
      CAPTURE(way.mesh());
      CAPTURE(way.shard());
      const auto scheduled = WayScheduler(ways.programs, ways.placed, ways.all_plans(p.device), p.device).schedule(way);
      REQUIRE(scheduled.has_value());
      const MeshReport report = report_of(p, way);
      CHECK(scheduled->bytes == *report.bytes.value);
      CHECK(off(scheduled->seconds.exposed, *report.exposed_s) < 0.02);
      CHECK(off(scheduled->seconds.total(), *report.step_time_s()) < 0.01);
      const StageReport& fullest = report.pipeline->stages[static_cast<size_t>(scheduled->fullest)];
      CHECK(off(scheduled->held.total(), fullest.peak.value->to_double()) < (spread == Spread::params ? 0.03 : 0.02));
    }
}

TEST_CASE("stages in plans: formulas beside schedules") {
  Planned p({"gpt2.ein", "batch=32 vocab=50304", 8, 80e9});
  p.device = *find_device("h100-sxm");
  PlannedWays ways(p, 4);
  const WayPlans plans = ways.plans(p.device);
  WaySearch search(ways.programs, ways.placed, p.device);
  for (const MeshWay& way : {staged_way(2, 4, {}), staged_way(4, 16, {}), staged_way(4, 4, {kData}), staged_way(12, 16, {kData}),
                             staged_way(3, 16, {kData}, Spread::states), staged_way(3, 16, {kData}, Spread::gradients)}) {
    CAPTURE(way.mesh());
    CAPTURE(way.shard());
    const auto scheduled = WayScheduler(ways.programs, ways.placed, plans, p.device).schedule(way);
    const auto estimated = search.estimate(way);
    REQUIRE(scheduled.has_value());
    REQUIRE(estimated.has_value());
    CHECK(off(estimated->seconds.total(), scheduled->seconds.total()) < 0.3);
    CHECK(off(estimated->seconds.sent, scheduled->seconds.sent) < 0.35);  // formulas leave out the tied embedding
    // In small stages the tied embedding's copies and gradients weigh, which formulas do not see, and what a forward keeps is more than a
    // plan's saved values, by what the same launches make for the backward; what is shown is the schedule's.
    CHECK(off(estimated->held.total(), scheduled->held.total()) < 0.6);
  }
}

// Narayanan et al. 2021: of equal stages, (p - 1) of (m + p - 1) parts of a step are idle.
TEST_CASE("stages in plans: the bubble") {
  Planned p({"deep_linear.ein", "batch=4096 width=512 layers=24", 8, 80e9});
  for (DeviceLink& link : p.device.links) link.bandwidth = 1e15, link.latency_s = 0;
  p.device.launch_s = 0;
  PlannedWays ways(p, 1);
  WaySearch search(ways.programs, ways.placed, p.device);
  for (const int64_t stages : {2, 4, 8})
    for (const int64_t microbatches : {8, 64}) {
      const auto estimated = search.estimate(staged_way(stages, microbatches, {}));
      REQUIRE(estimated.has_value());
      const auto count = static_cast<double>(stages), parts = static_cast<double>(microbatches);
      CAPTURE(stages);
      CAPTURE(microbatches);
      CHECK(off(estimated->seconds.idle / estimated->seconds.total(), (count - 1) / (parts + count - 1)) < 0.05);
    }
}

TEST_CASE("stages in plans: none where all else fits as well, and all where nothing else does") {
  const auto advice_of = [](double memory) {
    // No number of devices divides params: the data alone is split, or the loop.
    Planned p({"deep_linear.ein", "batch=96 width=97 layers=12", 4, memory});
    for (DeviceLink& link : p.device.links) link.bandwidth = 1e12, link.latency_s = 0;
    return advise(p.whole, p.options, p.declared, plans_for(p.device), p.device, 4);
  };
  const MeshAdvice roomy = advice_of(80e9);
  REQUIRE(!roomy.ways.empty());
  CHECK(!roomy.ways[0].scheduled.way.stages);
  const double params = roomy.ways[0].scheduled.held.params;
  const MeshAdvice tight = advice_of(2 * params);  // params, moments and gradients are three times that
  REQUIRE(!tight.ways.empty());
  for (const AdvisedWay& way : tight.ways) {
    CHECK(way.scheduled.way.stages);
    CHECK(way.scheduled.held.total() <= 2 * params);
  }
}

TEST_CASE("stages in plans: the fastest way that recomputes nothing is always told") {
  if (kFewCases) return;
  // Links so slow that only stages are fast, and so little memory that those recompute.
  Planned p({"gpt2.ein", "batch=4 seq=64 vocab=24 layers=8 heads=4 head=4", 4, 600e3});
  for (DeviceLink& link : p.device.links) link.bandwidth = 1e6;
  PlannedWays ways(p, 1);
  const FoundWays all = WaySearch(ways.programs, ways.placed, p.device).search(4, 1000);
  const auto fastest = std::ranges::find_if(all.best, [](const EstimatedWay& e) { return !e.way.recomputes; });
  REQUIRE(fastest != all.best.end());
  REQUIRE(fastest != all.best.begin());
  const FoundWays few = WaySearch(ways.programs, ways.placed, p.device).search(4, 1);
  REQUIRE(few.best.size() == 1);
  CHECK(few.best[0].way == all.best[0].way);
  REQUIRE(few.keeping.size() == 1);
  CHECK(few.keeping[0].way == fastest->way);
  if (!Sample(2).takes(0)) return;
  p.device.memory_bytes -= 20e3;
  const MeshAdvice advice = advise(p.whole, p.options, p.declared, plans_for(p.device), p.device, 4, {}, 3);
  const std::string text = advice_document(advice).text({});
  const auto recomputes = [](const AdvisedWay& way) { return way.scheduled.way.recomputes; };
  CHECK(std::ranges::any_of(advice.ways, [&](const AdvisedWay& way) { return recomputes(way) && way.scheduled.way.stages; }));
  CHECK(!std::ranges::all_of(advice.ways, recomputes));
  CHECK(text.find("Of those that recompute nothing, ") != std::string::npos);
  // Where all that are told would recompute, it takes the place of the slowest.
  p.device.memory_bytes += 50e3;
  const MeshAdvice one = advise(p.whole, p.options, p.declared, plans_for(p.device), p.device, 4, {}, 1);
  REQUIRE(one.ways.size() == 1);
  CHECK(!recomputes(one.ways[0]));
}

// Bytes of the fullest device of a program with a way's lines, within a limit if the way asks for one.
double peak_of(const Planned& p, const MeshWay& way) {
  Scheduling scheduling;
  if (way.recomputes) scheduling.memory_limit = MemoryLimit{static_cast<int64_t>(p.device.usable_bytes()), 0, 1, MemoryGoal::any_choice};
  if (way.stages) {
    const MeshReport report = report_of(p, way, scheduling);
    double peak = 0;
    for (const StageReport& stage : report.pipeline->stages) peak = std::max(peak, stage.peak.value->to_double());
    return peak;
  }
  PipelineOptions options = p.options;
  options.without_mesh = false;
  options.mesh = way.mesh(), options.shard = way.shard();
  const Compilation c = compile_again(p.whole, options, p.options.dims);
  REQUIRE(c.graph.has_value());
  const auto made = partition_for_mesh(*c.graph, p.options.dims);
  const ProcessBytes process = process_bytes_of(*c.graph, p.options.dims, p.device.target);
  const PlanStep plan = plan_for_device(scheduling, p.device);
  return static_cast<double>(mesh_step(localize(std::get<Partitioned>(made)), p.options.dims, plan, process, nullptr, {}).peak());
}

// A way that is told to fit does, with what its process takes besides, and where it recomputes within the limit of its lines.
TEST_CASE("plans: reports reach the memory that is told") {
  Device processor;
  processor.name = "small", processor.f32 = processor.bandwidth = 50e9, processor.reserve_bytes = 0;
  processor.links = {{"near", 64, 1e9, 1e-6}};
  const WayAxis model{"model", 2, {Name("heads"), Name("hidden"), Name("vocab")}, false};
  for (const bool on_processor : {true, false}) {
    if (kFewCases && !on_processor) break;
    CAPTURE(on_processor);
    Planned p({"gpt2.ein", "batch=8 seq=64 vocab=24 layers=8 heads=4 head=4", 4, 80e9});
    if (on_processor) p.device = processor;
    PlannedWays ways(p, 1);
    const WayPlans plans = ways.all_plans(p.device);
    std::vector<MeshWay> tried{staged_way(2, 4, {model})};
    if (!on_processor) tried.push_back(MeshWay{{kData, model}, Spread::params});
    for (const MeshWay& way : tried) {
      CAPTURE(way.mesh());
      CAPTURE(way.shard());
      const auto scheduled_in = [&](double bytes) {
        p.device.memory_bytes = bytes + p.device.reserve_bytes;
        const auto scheduled = WayScheduler(ways.programs, ways.placed, plans, p.device).schedule(way);
        REQUIRE(scheduled.has_value());
        return *scheduled;
      };
      const ScheduledWay roomy = scheduled_in(80e9);
      CHECK(!roomy.way.recomputes);
      CHECK(off(roomy.held.total(), peak_of(p, roomy.way)) < 0.02);
      const ScheduledWay none = scheduled_in(1e3);
      CHECK(!none.fits);
      REQUIRE(none.held.total() < 0.95 * roomy.held.total());
      const ScheduledWay tight = scheduled_in(1.03 * none.held.total());
      REQUIRE(tight.fits);
      REQUIRE(tight.way.recomputes);
      CHECK(tight.again > 0);
      double peak = 0;
      REQUIRE_NOTHROW(peak = peak_of(p, tight.way));
      CHECK(peak <= p.device.usable_bytes());
    }
  }
}

}  // namespace einc
