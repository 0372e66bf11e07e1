// SPDX-License-Identifier: Apache-2.0
// `shard layers over stage (microbatches = 8)`: the dim counts a loop, and each device along the mesh axis has some of its iterations.
// Which nodes these are is compiler/partition's to find; here it is checked that there is one such loop, and what a microbatch is.
#include <algorithm>

#include "compiler/elaborate/elaborator.h"
#include "compiler/ir/examples.h"

namespace einc {

bool Elaborator::counts_loop(Name dim) const {
  return graph_.dims.find(dim) != nullptr &&
         std::ranges::any_of(graph_.loops, [&](const Loop& loop) { return loop.trip_count == graph_.dims.size(dim); });
}

void Elaborator::request_stages(const ast::Shard& line, const AxisList& over) {
  const ast::ShardTarget& target = line.targets[0];
  const Name loop = target.axis.name;
  const auto refuse = [&](std::string_view why) { return diagnostics_.report(Code::pipeline_stages, target.span, loop, why); };
  if (stages_line_ != nullptr) {
    refuse("another line has them already").label(stages_line_->targets[0].span, "first here");
    return;
  }
  stages_line_ = &line;
  if (line.targets.size() > 1 || over.size() > 1) {
    refuse("a loop of its own lies over one axis of the mesh").hint("shard {} over {} (microbatches = 8)", loop, line.over[0].name);
    return;
  }
  const auto is_loop = [&](const Loop& known) { return known.trip_count == graph_.dims.size(loop); };
  if (std::ranges::count_if(graph_.loops, is_loop) > 1) {
    refuse("it counts several loops").hint("stages are parts of one loop: give each loop a dim of its own");
    return;
  }
  if (!line.microbatches) {
    const Span end = line.over.back().span;
    refuse("nothing says into how many parts a step's examples are divided on their way")
        .hint("with 8 parts: shard {} over {} (microbatches = 8)", loop, line.over[0].name)
        .replace({end.file, end.end, end.end}, " (microbatches = 8)");
    return;
  }
  const auto count = evaluate_size(*line.microbatches);
  if (!count) return;
  if (const auto constant = count->as_rational(); constant && (!count->as_integer() || *count->as_integer() < 1)) {
    diagnostics_.report(Code::dim_value, line.microbatches->span, "microbatches", constant->str());
    return;
  }
  graph_.mesh.stages = {over[0], loop, *count};
}

// Against all other lines, and the sizes that are known.
void Elaborator::check_stages() {
  const PipelineStages& stages = graph_.mesh.stages;
  if (!stages.any()) return;
  const Span span = stages_line_->targets[0].span;
  const MeshAxis& axis = graph_.mesh.axes[static_cast<size_t>(stages.over)];
  const auto is_shared = [&](const ShardRequest& request) { return request.over.contains(stages.over); };
  const auto is_spread = [&](const MeshSpread& spread) { return (graph_.mesh.*spread.over).contains(stages.over); };
  if (std::ranges::any_of(graph_.mesh.requests, is_shared) || std::ranges::any_of(kMeshSpreads, is_spread)) {
    diagnostics_.report(Code::pipeline_stages, span, stages.loop, fmt::format("mesh axis `{}` splits tensors, too", axis.name.str()))
        .hint("give the stages an axis of the mesh that nothing else is split over");
    return;
  }
  const auto iterations = graph_.dims.size(stages.loop).evaluate_integer(values_), devices = axis.size.evaluate_integer(values_);
  if (iterations && devices && *iterations < *devices) {
    diagnostics_.report(Code::pipeline_stages, span, stages.loop, fmt::format("{} iterations do not make {} stages", *iterations, *devices))
        .hint("each stage has an iteration at least");
    return;
  }
  if (examples_dim(graph_).empty()) {
    diagnostics_.report(Code::pipeline_stages, span, stages.loop, "nothing says what an example is: microbatches divide a dim")
        .hint("the first axis of each input is that dim: input tokens: i32[batch seq]");
    return;
  }
  // The dims of a microbatch are bound on their own, so that this is no condition of the graph's.
  Poly parts = stages.microbatches;
  const auto divides_inputs = [](const ShardRequest& request) { return request.declared == Op::input && request.axis == 0; };
  if (const auto request = std::ranges::find_if(graph_.mesh.requests, divides_inputs); request != graph_.mesh.requests.end())
    for (const int m : request->over) parts *= graph_.mesh.axes[static_cast<size_t>(m)].size;
  const auto examples = examples_per_step(graph_).evaluate_integer(values_), count = parts.evaluate_integer(values_);
  if (!examples || !count || *examples % *count == 0) return;
  const Name dim = examples_dim(graph_);
  auto report =
      diagnostics_.report(Code::pipeline_stages, span, stages.loop,
                          fmt::format("{} = {} is not divided by {}, its microbatches on all devices", dim.str(), *examples, *count));
  const int64_t next = *examples - *examples % *count;
  if (next <= INT64_MAX - *count) report.hint("the next size that fits is {} = {}", dim, next + *count);
}

}  // namespace einc
