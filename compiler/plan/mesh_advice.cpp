// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/mesh_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "compiler/cost/totals.h"
#include "compiler/fuse/memory_limit.h"
#include "compiler/ir/text.h"
#include "compiler/plan/remembered_plans.h"
#include "compiler/plan/ring_ways.h"
#include "compiler/plan/schedule_ways.h"
#include "compiler/report/report.h"
#include "runtime/base/flops_utilisation.h"

namespace einc {
namespace {

// Of ways that fit by their formulas some do not by their schedules: the next ones are tried, as many again as are shown. So many of those
// that recompute nothing, and of the smallest, where none of the first is told.
constexpr size_t kTried = 10;

// Sentences on what a step goes to, and on what is behind the way before.
std::vector<std::string> reasons_for(const AdvisedWay& way, size_t rank, const AdvisedWay* before, const Device& device) {
  const ScheduledWay& s = way.scheduled;
  std::vector<std::string> why;
  why.push_back(
      fmt::format("Work: {} of the step, {:.2f} of an equal share of the FLOPs", percent(s.seconds.work / s.seconds.total()), way.share));
  std::string sent;
  for (size_t i = 0; i < s.sent.size() && i < 3 && s.sent[i].seconds >= 0.05 * s.seconds.sent; ++i)
    sent += fmt::format("{}{} over {} {} ({})", i == 0 ? "" : ", ", to_string(s.sent[i].kind), s.sent[i].axis,
                        human_seconds(s.sent[i].seconds), s.sent[i].link);
  why.push_back(sent.empty() ? "Sent: nothing" : "Sent: " + sent);
  if (s.gathered)
    why.push_back(
        fmt::format("Keys go round: gathered, a step takes {} and {}", human_seconds(s.gathered->seconds), human_bytes(s.gathered->bytes)));
  const double fixed = s.held.params + s.held.gradients + s.held.states;
  if (s.way.stages)
    why.push_back(fmt::format(
        "Stages: {} of {}, {} microbatches; idle {} of the step; times are those of stage {}, which has the most work", s.way.stages->count,
        s.way.stages->loop.str(), s.way.micro_batches, percent(s.seconds.idle / s.seconds.total()), s.shown));
  const std::string process = s.held.process > 0 ? ", process " + human_bytes(s.held.process) : "";
  why.push_back(fmt::format("Memory{}: {} of {}; params, gradients and states {}, kept for the backward {}, workspace {}{}",
                            s.way.stages ? fmt::format(" of stage {}", s.fullest) : "", percent(s.held.total() / device.usable_bytes()),
                            human_bytes(device.usable_bytes()), human_bytes(fixed), human_bytes(s.held.kept),
                            human_bytes(s.held.workspace + s.held.inputs), process));
  if (s.way.recomputes)
    why.push_back(fmt::format("Recomputed in the backward: {} of the work{}; the limit is the device's memory", human_seconds(s.again),
                              s.way.stages ? " on the stage with the most" : ""));
  if (!before) return why;
  const StepSeconds &mine = s.seconds, &theirs = before->scheduled.seconds;
  const auto change = [](double t) { return (t < 0 ? "-" : "+") + human_seconds(std::abs(t)); };
  const std::string idle = mine.idle != theirs.idle ? ", idle " + change(mine.idle - theirs.idle) : "";
  why.push_back(fmt::format("{} slower than {}: work {}, exposed {}{}", human_seconds(mine.total() - theirs.total()), rank - 1,
                            change(mine.work - theirs.work), change(mine.exposed - theirs.exposed), idle));
  return why;
}

// Names of which no factor of the number of devices divides the sizes, and a size that more could be made of.
void note_names(MeshAdvice& advice, const std::vector<SplitName>& names, const Bindings& dims) {
  constexpr int64_t kRound = 128;  // devices that split an axis, at most: tensor parallelism stays within a few nodes
  int64_t parts = 1;
  for (int64_t d = 1; d <= std::min(kRound, advice.devices); ++d)
    if (advice.devices % d == 0) parts = d;
  for (const SplitName& name : names) {
    const auto size = name.places[0].size.evaluate_integer(dims);
    if (!size) continue;
    advice.sizes.push_back(fmt::format("{} = {}", name.name.str(), *size));
    const bool is_dim = dims.contains(name.name);
    if (is_dim && *size > 1 && std::gcd(*size, advice.devices) == 1)
      advice.whole.push_back(fmt::format("{} = {} stays whole: no number of these devices divides it; {} = {} could be split {} ways",
                                         name.name.str(), *size, name.name.str(), (*size / parts + 1) * parts, parts));
  }
}

struct WholeFlops {
  double model, step;  // forward and backward; with the optimizer
};
WholeFlops whole_flops(const Graph& graph, const Bindings& dims) {
  const Sizes sizes(graph);
  const FlopTotals totals = count_flops(graph, constant_nodes(graph), flop_costs(graph, sizes));
  return {(totals.total(Phase::forward) + totals.total(Phase::backward)).to_double(dims).value_or(0),
          totals.step().to_double(dims).value_or(0)};
}

Scheduling whole_iterations(std::vector<std::string> like) {
  Scheduling again;
  again.memory_limit = MemoryLimit{0, 0, 1, MemoryGoal::whole_iterations, std::move(like)};
  return again;
}

}  // namespace

WayPlans way_plans(const PlanFor& plan_for, const SamplePrograms& programs, const PlacedWays& placed) {
  const std::vector<Name>& counts = programs.few().counts();
  return {remembered(plan_for({}), counts), remembered(plan_for(whole_iterations(placed.made_again)), counts)};
}

PlacedWays placed_ways(const Graph& graph, const Bindings& dims, const PlanFor& plan_for, Name loop) {
  const PlannedStep again = plan_for(whole_iterations({}))(graph, dims, RunMode::training, {});
  PlacedWays placed{placed_values(graph, plan_for({})(graph, dims, RunMode::training, {})), placed_values(graph, again), {}, loop, {}, {}};
  for (const NodeId id : again.formed->recomputation.values) placed.made_again.push_back(value_kind(graph[id]));
  if (loop.empty()) return placed;
  placed.firsts = even_stages(3, graph.dims.bind(dims).values.at(loop));
  placed.stages = place_stages(graph, loop, placed.firsts);
  return placed;
}

MeshAdvice advise(const Compilation& whole, const PipelineOptions& options, const DeclaredAxes& declared, const PlanFor& plan_for,
                  const Device& device, int64_t devices, decltype(WayPlans::process) process, size_t shown) {
  const Bindings dims = whole.graph->dims.bind(options.dims).values;
  SamplePrograms programs(whole, options, dims, split_names(*whole.graph, declared));
  MeshAdvice advice{whole.graph->name.str(),
                    std::string(to_string(whole.graph->policy == Policy::inherit ? Policy::f32 : whole.graph->policy)),
                    devices,
                    device,
                    programs.batch(),
                    programs.batch_size(),
                    {},
                    {},
                    0,
                    0,
                    {},
                    {}};
  note_names(advice, programs.names(), dims);
  const Graph plain = programs.graph(Micro::whole, programs.count(), MeshWay{});
  Bindings one = programs.dims(programs.count(), MeshWay{});
  if (!programs.batch().empty()) one[programs.batch()] = std::max<int64_t>(1, programs.batch_size() / devices);
  const PlacedWays placed = placed_ways(plain, one, plan_for, programs.loop());
  WaySearch search(programs, placed, device, spreads_of(*whole.graph, declared));
  const FoundWays found = search.search(devices, std::max(2 * shown, kTried));
  advice.estimated = found.estimated, advice.fitting = found.fitting;
  WayPlans plans = way_plans(plan_for, programs, placed);
  plans.process = std::move(process);
  WaySchedulers schedulers(programs, placed, plans, device);
  std::vector<MeshWay> tried;
  RingWays rings(programs, !is_word_of(*whole.graph, declared, Name("keys")));
  // Those that fit, in order; the least of those that do not is kept.
  const auto fitting = [&](std::span<const EstimatedWay> ways) {
    std::vector<MeshWay> fresh;
    for (const EstimatedWay& way : ways)
      if (std::ranges::find(tried, way.way) == tried.end()) fresh.push_back(way.way), tried.push_back(way.way);
    std::vector<ScheduledWay> fit;
    for (std::optional<ScheduledWay>& way : rings.schedule(schedulers, std::move(fresh))) {
      if (way && way->fits) fit.push_back(std::move(*way));
      if (!way || way->fits) continue;
      if (!advice.smallest || way->held.total() < advice.smallest->held.total()) advice.smallest = {way->way, way->held, {}, 0};
    }
    return fit;
  };
  const auto faster = [](const AdvisedWay& a, const AdvisedWay& b) {
    return ranks_before(a.scheduled.seconds, a.scheduled.held, a.scheduled.way, b.scheduled.seconds, b.scheduled.held, b.scheduled.way);
  };
  const auto add = [&](std::span<const EstimatedWay> ways) {
    while (!ways.empty() && advice.ways.size() < shown) {
      const size_t next = std::min(ways.size(), shown - advice.ways.size());
      for (ScheduledWay& way : fitting(ways.first(next))) advice.ways.push_back({std::move(way), {}, 1, {}});
      ways = ways.subspan(next);
    }
  };
  add(std::span(found.best).first(std::min(2 * shown, found.best.size())));
  // What is made again has its price in every step, and another device may have more memory: the fastest of the others is always told.
  const auto recomputes = [](const AdvisedWay& way) { return way.scheduled.way.recomputes; };
  std::span<const EstimatedWay> keeping(found.keeping.data(), std::min(kTried, found.keeping.size()));
  while (!keeping.empty() && std::ranges::all_of(advice.ways, recomputes)) {
    const size_t next = std::min(keeping.size(), schedulers.threads());
    for (ScheduledWay& way : fitting(keeping.first(next))) {
      if (way.way.recomputes) continue;  // by its schedule it has to, unlike by its formula
      if (advice.ways.size() == shown) advice.ways.erase(std::ranges::max_element(advice.ways, faster));
      advice.ways.push_back({std::move(way), {}, 1, {}});
      break;
    }
    keeping = keeping.subspan(next);
  }
  if (advice.ways.empty()) add(std::span(found.smallest).first(std::min(kTried, found.smallest.size())));
  if (!advice.ways.empty()) advice.smallest.reset();
  std::ranges::sort(advice.ways, faster);
  const WholeFlops flops = whole_flops(plain, dims);
  const double peak = contraction_peak(device, whole.graph->policy).value_or(0), all = static_cast<double>(devices);
  for (size_t i = 0; i < advice.ways.size(); ++i) {
    AdvisedWay& way = advice.ways[i];
    way.mfu = flops_utilisation(flops.model, way.scheduled.seconds.total(), peak * all);
    if (flops.step > 0) way.share = way.scheduled.flops.to_double() * all / flops.step;
    way.why = reasons_for(way, i + 1, i == 0 ? nullptr : &advice.ways[i - 1], device);
  }
  return advice;
}

}  // namespace einc
