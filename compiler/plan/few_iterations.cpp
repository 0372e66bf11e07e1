// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/few_iterations.h"

#include <algorithm>
#include <set>

#include "compiler/cost/op_cost.h"
#include "compiler/cost/totals.h"

namespace einc {
namespace {

// The first and the last iteration may differ from those between, which are alike.
constexpr int64_t kFew = 2;

// Loops that the number of iterations of which is a dim, which stands nowhere else.
std::vector<Name> plain_counts(const Graph& graph) {
  std::set<std::string> other;
  for (const Node& node : graph.nodes)
    for (const Axis& axis : node.type.axes)
      if (!axis.size.is_constant())
        for (const Name name : axis.size.free_names()) other.insert(name.str());
  for (const Name name : graph.chosen_by) other.insert(name.str());
  for (const LoopContext& context : graph.loop_contexts)
    if (context.parent != 0)  // a loop within a loop: both counts multiply
      for (const uint32_t loop : {context.loop, graph.loop_contexts[context.parent].loop})
        for (const Name name : graph.loops[loop].trip_count.free_names()) other.insert(name.str());
  std::vector<Name> counts;
  for (const Loop& loop : graph.loops) {
    const std::vector<Name> names = loop.trip_count.free_names();
    if (names.size() == 1 && loop.trip_count == Poly::dim(names[0])) {
      if (std::ranges::find(counts, names[0]) == counts.end()) counts.push_back(names[0]);
    } else {
      for (const Name name : names) other.insert(name.str());
    }
  }
  std::erase_if(counts, [&](Name name) { return other.contains(name.str()); });
  return counts;
}

struct Extent {
  Rational nodes, flops;
};

std::optional<Extent> extent_of(const Compilation& whole, const PipelineOptions& options, const Bindings& dims) {
  const Compilation c = compile_again(whole, options, dims);
  if (!c.graph) return std::nullopt;
  const Sizes sizes(*c.graph);
  const Poly flops = count_flops(*c.graph, constant_nodes(*c.graph), flop_costs(*c.graph, sizes)).step();
  return Extent{Rational(c.graph->size()), flops.evaluate(c.graph->dims.bind(dims).values).value_or(Rational(0))};
}

// Each further iteration is like the one before.
bool grows_evenly(const Compilation& whole, const PipelineOptions& options, Bindings dims, Name count) {
  std::vector<Extent> extents;
  for (int64_t n = kFew; n < kFew + 3; ++n) {
    dims[count] = n;
    const auto extent = extent_of(whole, options, dims);
    if (!extent) return false;
    extents.push_back(*extent);
  }
  return extents[1].nodes - extents[0].nodes == extents[2].nodes - extents[1].nodes &&
         extents[1].flops - extents[0].flops == extents[2].flops - extents[1].flops;
}

}  // namespace

FewIterations::FewIterations(const Compilation& whole, const PipelineOptions& options, const Bindings& dims) {
  for (const Name count : plain_counts(*whole.graph))
    if (dims.at(count) > kFew + 2 && grows_evenly(whole, options, options.dims, count)) counts_.push_back(count);
  const auto is_counted = [&](const Loop& loop) { return loop.trip_count == Poly::dim(counts_[0]); };
  if (counts_.size() == 1 && std::ranges::count_if(whole.graph->loops, is_counted) == 1) single_ = counts_[0];
  folding_ = options.dims;
  Bindings few = options.dims;
  for (const Name count : counts_) few[count] = kFew, folding_[count] = kFew + 2;
  samples_.push_back(few);
  for (const Name count : counts_) {
    samples_.push_back(few);
    samples_.back()[count] = kFew + 1;
    more_.push_back(dims.at(count) - kFew);
  }
}

Bindings FewIterations::folding(int64_t times) const {
  Bindings dims = folding_;
  if (!single_.empty()) dims[single_] *= times;
  return dims;
}

double FewIterations::whole(std::span<const double> of_samples) const {
  double sum = of_samples[0];
  for (size_t i = 0; i < more_.size(); ++i) sum += static_cast<double>(more_[i]) * (of_samples[i + 1] - of_samples[0]);
  return sum;
}

double FewIterations::whole(const Taken& shorter, const Taken& longer) const {
  const auto more = static_cast<double>(more_[0] + kFew - longer.iterations),
             apart = static_cast<double>(longer.iterations - shorter.iterations);
  return longer.amount + more / apart * (longer.amount - shorter.amount);
}

Rational FewIterations::whole(std::span<const Rational> of_samples) const {
  Rational sum = of_samples[0];
  for (size_t i = 0; i < more_.size(); ++i) sum = sum + Rational(more_[i]) * (of_samples[i + 1] - of_samples[0]);
  return sum;
}

}  // namespace einc
