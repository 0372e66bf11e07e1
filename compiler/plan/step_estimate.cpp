// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/step_estimate.h"

#include <algorithm>
#include <limits>

#include "compiler/partition/pipeline_timeline.h"
#include "compiler/report/ring.h"

namespace einc {
namespace {

struct Sent {
  double seconds = 0, exposed = 0;
};

// `along`: seconds over each axis, beside so much work.
template <class Along>
Sent sent_beside(const MeshWay& way, double work, Along along) {
  double beside = 0, between = 0;
  for (size_t k = 0; k < way.axes.size(); ++k) (way.axes[k].spreads ? beside : between) += along(k);
  return {beside + between, between + std::max(0.0, beside - work)};
}

}  // namespace

StageShare share_of(const WayStages& stages, int64_t stage, int64_t iterations, int64_t microbatches) {
  const int64_t own = first_iteration(stage + 1, stages.count, iterations) - first_iteration(stage, stages.count, iterations);
  return {static_cast<double>(own), stage == 0, stage + 1 == stages.count, microbatches_held(stage, stages.count, microbatches), 1};
}

std::vector<WaySizes> sizes_of(const MeshWay& way, int64_t batch, int64_t iterations) {
  WaySizes sizes;
  for (size_t m = 0; m < way.axes.size(); ++m) sizes.values[m] = static_cast<double>(way.axes[m].size);
  sizes.values[way.axes.size()] = static_cast<double>(batch / way.micro_batches);
  sizes.micro_batches = way.micro_batches;
  sizes.stage.iterations = static_cast<double>(iterations);
  if (!way.stages) return {sizes};
  sizes.pipelined = true, sizes.sums_once = way.spread == Spread::nothing || way.spread == Spread::states;
  const int64_t count = way.stages->count;
  const auto share = [&](int64_t stage) { return share_of(*way.stages, stage, iterations, way.micro_batches); };
  std::vector<WaySizes> all(2, sizes);
  all[0].stage = share(0), all[1].stage = share(count - 1);
  if (count == 2) return all;
  // The second stage holds the most of those between.
  StageShare between = share(1);
  const double left = static_cast<double>(iterations) - all[0].stage.iterations - all[1].stage.iterations;
  for (int64_t s = 2; s + 1 < count; ++s) between.iterations = std::max(between.iterations, share(s).iterations);
  between.alike = left / between.iterations;
  sizes.stage = between;
  all.push_back(sizes);
  return all;
}

StepEstimate::StepEstimate(const StepFormulas& formulas, const MeshWay& way, int64_t batch, int64_t iterations, const Device& device)
    : formulas_(formulas), way_(way), device_(device) {
  for (const WaySizes& sizes : sizes_of(way, batch, iterations)) {
    const Stage& stage = stages_.emplace_back(Stage{sizes, formulas.held(sizes), 0, {}, {}});
    if (stages_.size() == 1 || stage.held.as_is.total() > held_.as_is.total()) held_.as_is = stage.held.as_is;
    if (stages_.size() == 1 || stage.held.least.total() > held_.least.total()) held_.least = stage.held.least;
  }
}

std::optional<StepEstimate::Fit> StepEstimate::fit(double bytes) {
  Fit most;
  for (Stage& stage : stages_) {
    const std::optional<FittedStep> step = fitted(stage.held, bytes);
    if (!step) return std::nullopt;
    stage.again = step->share > 0 ? step->share * formulas_.again(stage.sizes) : 0;
    most.again = std::max(most.again, stage.again);
    if (step->held.total() > most.held.total()) most.held = step->held;
  }
  return most;
}

StepSeconds StepEstimate::seconds(std::span<const int> order) {
  if (!has_work_) {
    const std::vector<double> products = formulas_.product_seconds(stages_.front().sizes);
    for (Stage& stage : stages_) stage.work = formulas_.work(stage.sizes, products), stage.sent = formulas_.sent(stage.sizes);
  }
  has_work_ = true;
  return way_.stages ? pipeline_seconds(order) : whole_seconds(order);
}

StepSeconds StepEstimate::whole_seconds(std::span<const int> order) const {
  const Stage& all = stages_.front();
  const double work = all.work.step(way_.micro_batches) + all.again;
  const SecondsByAxis along = formulas_.sent_seconds(all.sent, all.sizes, order);
  const Sent sent = sent_beside(way_, work, [&](size_t k) { return along[k].step(way_.micro_batches); });
  return {work, sent.seconds, sent.exposed};
}

// Up and down again between two stages.
double StepEstimate::exchange_seconds() const {
  double inside = 1;
  for (const WayAxis& axis : way_.axes) inside *= static_cast<double>(axis.size);
  const auto ring = ring_on(device_, static_cast<double>(way_.stages->count), inside);
  if (!ring) return std::numeric_limits<double>::infinity();
  return formulas_.received(stages_.front().sizes) / ring->bandwidth + formulas_.values_received() * ring->step_s;
}

// The longest of two ways through the microbatches of partition/pipeline_timeline.h: all of them on the slowest stage, or as many rounds as
// it takes when a forward on the first stage waits for the backward of the microbatch that came as many before as there are stages.
StepSeconds StepEstimate::pipeline_seconds(std::span<const int> order) const {
  const auto stages = static_cast<double>(way_.stages->count), microbatches = static_cast<double>(way_.micro_batches);
  const double exchange = exchange_seconds();
  double passing = (stages - 1) * exchange, slowest = 0, ends = 0;
  StepSeconds of_slowest;
  for (const Stage& stage : stages_) {
    const SecondsByAxis along = formulas_.sent_seconds(stage.sent, stage.sizes, order);
    const double work = stage.work.each + stage.again / microbatches;
    const Sent each = sent_beside(way_, work, [&](size_t k) { return along[k].each; });
    const Sent once = sent_beside(way_, work, [&](size_t k) { return along[k].once; });  // behind the last backward
    const double takes = work + each.exposed;
    passing += stage.sizes.stage.alike * takes;
    ends = std::max(ends, stage.work.once + once.exposed);
    if (takes <= slowest) continue;
    slowest = takes;
    of_slowest = {microbatches * work + stage.work.once, microbatches * (each.seconds + exchange) + once.seconds,
                  microbatches * each.exposed + once.exposed};
  }
  double through = (microbatches - 1) * slowest;
  if (microbatches > stages) through = std::max(through, (microbatches - 1) / stages * passing);
  StepSeconds seconds = of_slowest;
  seconds.idle = std::max(0.0, through + passing + ends - of_slowest.work - of_slowest.exposed);
  return seconds;
}

}  // namespace einc
