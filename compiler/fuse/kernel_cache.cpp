// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/kernel_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/lower/divide_reductions.h"
#include "runtime/base/check.h"
#include "runtime/base/debug.h"

namespace einc {
namespace {

constexpr double kSmallKernel = 65536;  // elements; below it parallelism does not matter
constexpr double kBusyPoints = 16;      // outer points that keep the threads busy
constexpr int64_t kSharedRow = 32;      // elements, fewer than threads that share a row

// A reduction to single numbers whose stores its parts take along.
bool divides_whole(const Kernel& kernel, const KernelTarget& target) {
  const auto loops = std::ranges::count_if(kernel.stages, [](const Stage& s) { return !s.axes.empty(); });
  return target.whole_reductions == WholeReductions::joined && kernel.outer.empty() && loops == 1;
}

// Why a kernel should not make its sums over all rows; these stay in the threads' registers.
std::string sums_elsewhere(const Kernel& kernel, int64_t most) {
  if (most == 0) return "sums over all rows are a kernel of their own";
  int64_t sums = 0, row = 0;
  for (const Stage& stage : kernel.stages)
    for (const Store& s : stage.stores)
      if (s.mode == StoreMode::sum) row = trips(kernel, bits(stage.axes)), sums += row;
  if (row < kSharedRow) return "sums over all of many short rows are a kernel of their own";
  return sums > most ? "its threads cannot hold that many sums over all rows" : "";
}

std::string slower(const Group& group, const Kernel& kernel, const KernelTarget& target) {
  if (kernel.reductions.empty()) return {};
  if (kernel.part)
    if (std::string refusal = sums_elsewhere(kernel, target.column_sums); !refusal.empty()) return refusal;
  double points = 1, total = 1;  // all the axes of large layers together pass 2^63
  for (AxisId a : kernel.outer) points *= static_cast<double>(kernel.extent(a));
  for (const LoopAxis& axis : kernel.axes) total *= static_cast<double>(axis.extent);
  const bool contraction =
      std::any_of(kernel.stages.begin(), kernel.stages.end(), [](const Stage& s) { return s.axes.empty(); }) && group.stored.empty();
  if (contraction) return {};
  if (points < kBusyPoints && total > kSmallKernel && group.stored.size() > 1 && !divides_whole(kernel, target))
    return "too few rows to share among threads";
  for (const Stage& stage : kernel.stages) {
    if (stage.axes.empty() || stage.stores.empty()) continue;
    // Rows are stored while they are reduced, so the reduced loops must be the innermost ones.
    if (!kernel.outer.empty() && kernel.outer.back() > stage.axes.back()) return "the reduction runs across the rows that are stored";
  }
  return {};
}

}  // namespace

KernelCache::Entry& KernelCache::entry(const Group& group) {
  const auto [known, fresh] = built_.entries.try_emplace(signer_.sign(group));
  if (fresh)
    known->second = build(group);
  else if (debug_level() >= 2)
    verify(group, known->second);
  return known->second;
}

KernelCache::Entry KernelCache::build(const Group& group) const {
  BuildResult result = build_kernel(graph_, group, in_memory_);
  Entry entry;
  entry.refusal = result.built ? slower(group, result.built->kernel, target_) : std::move(result.refusal);
  if (!result.built || (!entry.refusal.empty() && group.members.size() > 1)) return entry;
  entry.buffers = signer_.numbers_of(result.built->buffers, group);
  entry.streams = signer_.numbers_of(result.built->streams, group);
  entry.sites = signer_.numbers_of(result.built->sites, group);
  entry.kernel = std::move(result.built->kernel);
  entry.column_sums = std::move(result.built->column_sums);
  return entry;
}

// A signature that leaves something out would give a group another's kernel.
void KernelCache::verify(const Group& group, const Entry& known) const {
  Entry own = build(group);
  const auto text = [](Entry& entry) {
    std::string all = entry.refusal;
    if (entry.kernel) finish(entry);
    for (const BuiltKernels::Finished& f : entry.finished) all += fmt::format("{}{}\n", to_string(*f.kernel), fmt::join(f.buffers, " "));
    return all + fmt::format("{}; {}", fmt::join(entry.streams, " "), fmt::join(entry.sites, " "));
  };
  Entry other = known;
  const std::string wanted = text(own), found = text(other);
  EINC_CHECK(wanted == found, "a group of {} takes another's kernel:\n{}\ninstead of\n{}", to_string(graph_[group.members.back()].op),
             found, wanted);
}

void KernelCache::finish(Entry& entry) {
  std::vector<DividedKernel> kernels;
  for (std::optional<Kernel>* kernel : {&entry.kernel, &entry.column_sums}) {
    if (!*kernel) continue;
    (*kernel)->streams = static_cast<int>(entry.streams.size());
    (*kernel)->sites = static_cast<int>(entry.sites.size());
    DividedKernel& k = kernels.emplace_back(DividedKernel::whole(std::move(**kernel)));
    if (!entry.column_sums) continue;
    for (size_t b = 0; b < entry.buffers.size(); ++b)
      if (entry.buffers[b] == Signer::kNoNode) k.add_parts(static_cast<uint16_t>(b));
    k.prune();
  }
  for (DividedKernel& k : kernels) {
    BuiltKernels::Finished finished{std::make_shared<Kernel>(std::move(k.kernel)), {}, std::move(k.parts)};
    for (uint16_t b : k.buffers) finished.buffers.push_back(b == DividedKernel::kParts ? Signer::kNoNode : entry.buffers[b]);
    entry.finished.push_back(std::move(finished));
  }
  entry.kernel.reset();
  entry.column_sums.reset();
}

bool KernelCache::builds(const Group& group) {
  const Entry& known = entry(group);
  return known.kernel.has_value() || !known.finished.empty();
}

std::vector<GraphKernel> KernelCache::kernels(const Group& group) {
  Entry& known = entry(group);
  if (known.finished.empty()) {
    EINC_CHECK(known.kernel.has_value(), "{} is no kernel: {}", to_string(graph_[group.members.back()].op), known.refusal);
    finish(known);
  }
  const auto nodes_of = [&](const std::vector<uint32_t>& numbers) { return signer_.nodes_of(numbers, group); };
  std::vector<GraphKernel> kernels;
  for (const BuiltKernels::Finished& k : known.finished)
    kernels.push_back({k.kernel, nodes_of(k.buffers), nodes_of(known.streams), nodes_of(known.sites), k.parts, group});
  return kernels;
}

}  // namespace einc
