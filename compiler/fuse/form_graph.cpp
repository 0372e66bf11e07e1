// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/form_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "runtime/base/failure.h"

namespace einc {
namespace {

constexpr int64_t kLargestValue = int64_t{1} << 60;
constexpr int kMostTries = 3;

}  // namespace

bool sizes_fit(const Graph& graph, const Bindings& values) {
  std::unordered_map<Poly, std::optional<int64_t>> known;
  const auto value_of = [&](const Poly& size) {
    const auto [at, fresh] = known.try_emplace(size);
    if (fresh) at->second = size.evaluate_integer(values);
    return at->second;
  };
  return std::ranges::all_of(graph.nodes, [&](const Node& node) {
    int64_t count = 1;
    // Of sizes that are no small integers the product may be one.
    const bool small = std::ranges::all_of(node.type.axes, [&](const Axis& axis) {
      const std::optional<int64_t> size = value_of(axis.size);
      return size && !__builtin_mul_overflow(count, *size, &count);
    });
    const std::optional<int64_t> exact = small ? count : value_of(node.type.count());
    return exact && *exact <= kLargestValue / 8;
  });
}

FormedGraph form_within_limit(const Graph& graph, const Bindings& given, RunMode mode, const Scheduling& options,
                              const ScheduleTarget& target) {
  // Of a device each choice is counted with all that it takes.
  const bool asks_fit = options.memory_limit && options.memory_limit->goal != MemoryGoal::whole_iterations;
  if (!asks_fit || options.memory_limit->of_device || mode != RunMode::training) return form_graph(graph, given, mode, options, target);
  const auto beside = [&](const FormedView& formed) {
    const BesidePlan besides = target.besides(formed);
    return besides.bytes + besides.shared;
  };
  Scheduling unlimited = options, limited = options;
  unlimited.memory_limit.reset();
  std::optional<FormedGraph> formed(form_graph(graph, given, mode, unlimited, target));
  for (int tries = 0;; ++tries) {
    limited.memory_limit->taken = options.memory_limit->taken + beside(formed->view());
    const int64_t bytes = formed->plan.total_bytes + limited.memory_limit->taken;
    if (bytes <= options.memory_limit->bytes) return std::move(*formed);
    // Other kernels may need more beside the plan than those whose need was counted: again with theirs, but not for ever.
    if (tries == kMostTries)
      throw RuntimeFailure(FailureKind::resource, fmt::format("a training step takes {} bytes: more than the limit of {} bytes", bytes,
                                                              options.memory_limit->bytes));
    formed.emplace(form_graph(graph, given, mode, limited, target));
  }
}

FormedGraph form_graph(const Graph& graph, const Bindings& given, RunMode mode, const Scheduling& options, const ScheduleTarget& target) {
  const BindResult bound = graph.dims.bind(given);
  if (!bound.ok()) throw RuntimeFailure(FailureKind::data, bound.problems.front().message);
  Forming forming{graph, given, mode, options, target.sizes, target.ask_attention, target.besides};
  run_passes(forming, target.passes);
  return {std::move(forming.own),   std::move(*forming.bound), std::move(forming.list),         std::move(*forming.plan),
          std::move(forming.roots), std::move(forming.at),     std::move(forming.recomputation)};
}

}  // namespace einc
