// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/mesh_advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/cost/totals.h"
#include "compiler/ir/text.h"
#include "compiler/report/report.h"

namespace einc {
namespace {

constexpr size_t kShown = 10;

std::string text_of(const SentKind& kind) {
  return fmt::format("{} over {} ({})", to_string(kind.kind), kind.axis, kind.link);
}

// What most of a step goes to, and what is behind the way before.
std::string reason_for(const ScheduledWay& way, const ScheduledWay* before, const Device& device) {
  const StepSeconds& s = way.seconds;
  std::string why = fmt::format("{} of the step is work", percent(s.work / s.total()));
  if (!way.sent.empty() && way.sent[0].seconds > 0)
    why += fmt::format("; {} is sent, most of it by {}: {}", percent(s.sent / s.total()), text_of(way.sent[0]),
                       human_seconds(way.sent[0].seconds));
  why += fmt::format("; {} of the memory, {} of that kept for the backward", percent(way.held.total() / device.usable_bytes()),
                     percent(way.held.kept / way.held.total()));
  if (!before) return why;
  const double work = s.work - before->seconds.work, sent = s.sent - before->seconds.sent;
  const auto signed_time = [](double t) { return (t < 0 ? "-" : "+") + human_seconds(std::abs(t)); };
  why += fmt::format(". Slower than the one before by {}: work {}, sent {}", human_seconds(s.total() - before->seconds.total()),
                     signed_time(work), signed_time(sent));
  return why;
}

double model_flops(const Graph& graph, const Bindings& dims) {
  const Sizes sizes(graph);
  const FlopTotals totals = count_flops(graph, constant_nodes(graph), flop_costs(graph, sizes));
  return (totals.total(Phase::forward) + totals.total(Phase::backward)).to_double(dims).value_or(0);
}

}  // namespace

MeshAdvice advise(const Compilation& whole, const PipelineOptions& options, const DeclaredAxes& declared, const PlanStep& plan,
                  const Device& device, int64_t devices) {
  const Bindings dims = whole.graph->dims.bind(options.dims).values;
  SamplePrograms programs(whole, options, dims);
  MeshAdvice advice{whole.graph->name.str(), std::string(to_string(whole.graph->policy == Policy::inherit ? Policy::f32 : whole.graph->policy)),
                    devices, device, programs.batch(), programs.batch_size(), {}, {}, 0, 0, split_names(*whole.graph, declared), dims};
  const Graph& plain = programs.plain();
  Bindings one = programs.dims(programs.count() - 1, MeshWay{});
  if (!programs.batch().empty()) one[programs.batch()] = std::max<int64_t>(1, programs.batch_size() / devices);
  const PlacedValues placed = placed_values(plain, plan(plain, one, RunMode::training));
  WaySearch search(programs, advice.names, placed, device);
  FoundWays found = search.search(devices, kShown);
  advice.smallest = std::move(found.smallest);
  advice.estimated = found.estimated, advice.fitting = found.fitting;
  WayScheduler scheduler(programs, search.names(), placed, plan, device);
  for (const EstimatedWay& way : found.best)
    if (auto scheduled = scheduler.schedule(way.way); scheduled && scheduled->held.total() <= device.usable_bytes())
      advice.ways.push_back({std::move(*scheduled), {}, ""});
  std::ranges::sort(advice.ways, [](const AdvisedWay& a, const AdvisedWay& b) {
    return ranks_before(a.scheduled.seconds, a.scheduled.held, a.scheduled.way, b.scheduled.seconds, b.scheduled.held, b.scheduled.way);
  });
  const double flops = model_flops(programs.plain(), dims), peak = contraction_peak(device, whole.graph->policy).value_or(0);
  for (size_t i = 0; i < advice.ways.size(); ++i) {
    AdvisedWay& way = advice.ways[i];
    way.why = reason_for(way.scheduled, i == 0 ? nullptr : &advice.ways[i - 1].scheduled, device);
    if (peak > 0) way.mfu = flops / (peak * static_cast<double>(devices) * way.scheduled.seconds.total());
  }
  return advice;
}

}  // namespace einc
