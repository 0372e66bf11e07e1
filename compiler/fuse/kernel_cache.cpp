#include "compiler/fuse/kernel_cache.h"

#include <algorithm>

#include "compiler/lower/collapse.h"
#include "compiler/lower/contraction.h"
#include "compiler/lower/flatten_sums.h"
#include "compiler/lower/keep_rows.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

constexpr double kSmallKernel = 65536;  // elements; below it parallelism does not matter
constexpr double kBusyPoints = 16;      // outer points that keep the threads busy
constexpr int64_t kSharedRow = 32;      // elements, fewer than threads that share a row
constexpr uint32_t kPartsNumber = UINT32_MAX;

// A reduction to single numbers whose stores its parts take along.
bool divides_whole(const Kernel& kernel, const KernelTarget& target) {
  const auto loops = std::ranges::count_if(kernel.stages, [](const Stage& s) { return !s.axes.empty(); });
  return target.divides_stores && kernel.outer.empty() && loops == 1;
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

// Stages without loops of their own before those that they do not need.
void store_points_first(Kernel& kernel) {
  const std::vector<uint64_t> needs = reductions_of_values(kernel);
  for (size_t s = 1; s < kernel.stages.size(); ++s) {
    Stage &before = kernel.stages[s - 1], &stage = kernel.stages[s];
    if (!stage.axes.empty() || before.axes.empty() || !stage.reductions.empty() || stage.ordered || before.ordered) continue;
    uint64_t made = 0, needed = 0;
    for (uint16_t r : before.reductions) made |= uint64_t{1} << r;
    for (const Store& store : stage.stores) needed |= needs[store.value];
    if (!(made & needed)) std::swap(before, stage);
  }
}

// A product of matrices, whose depth a library divides itself.
bool is_product(Kernel kernel) {
  find_contraction(kernel);
  return kernel.contraction && !kernel.contraction->rows.empty() && !kernel.contraction->columns.empty();
}

}  // namespace

// Members by their place, nodes that the group reads behind them.
uint32_t KernelCache::number_of(NodeId id, const Group& group) const {
  if (!id.valid()) return kPartsNumber;
  const auto member = std::lower_bound(group.members.begin(), group.members.end(), id);
  if (member != group.members.end() && *member == id) return static_cast<uint32_t>(member - group.members.begin());
  const std::vector<NodeId>& outside = signer_.outside();
  const auto read = std::find(outside.begin(), outside.end(), id);
  EINC_CHECK(read != outside.end(), "a kernel's buffer is no node of its group");
  return static_cast<uint32_t>(group.members.size() + static_cast<size_t>(read - outside.begin()));
}

NodeId KernelCache::node_of(uint32_t number, const Group& group) const {
  if (number == kPartsNumber) return {};
  return number < group.members.size() ? group.members[number] : signer_.outside()[number - group.members.size()];
}

KernelCache::Entry& KernelCache::entry(const Group& group) {
  const auto [known, fresh] = entries_.try_emplace(signer_.sign(group));
  if (fresh) build(group, known->second);
  return known->second;
}

void KernelCache::build(const Group& group, Entry& entry) {
  BuildResult result = build_kernel(graph_, group, in_memory_);
  entry.refusal = result.built ? slower(group, result.built->kernel, target_) : std::move(result.refusal);
  if (!result.built || (!entry.refusal.empty() && group.members.size() > 1)) return;
  const auto numbers_of = [&](const std::vector<NodeId>& nodes) {
    std::vector<uint32_t> numbers;
    for (NodeId id : nodes) numbers.push_back(number_of(id, group));
    return numbers;
  };
  entry.buffers = numbers_of(result.built->buffers);
  entry.streams = numbers_of(result.built->streams);
  entry.sites = numbers_of(result.built->sites);
  entry.kernel = std::move(result.built->kernel);
  entry.column_sums = std::move(result.built->column_sums);
}

// The kernels in the order they run.
std::vector<DividedKernel> KernelCache::divide(Entry& entry) const {
  if (entry.column_sums) {
    std::vector<DividedKernel> both;
    for (Kernel* kernel : {&*entry.kernel, &*entry.column_sums}) {
      DividedKernel& k = both.emplace_back(DividedKernel::whole(std::move(*kernel)));
      for (size_t b = 0; b < entry.buffers.size(); ++b)
        if (entry.buffers[b] == kPartsNumber) k.add_parts(static_cast<uint16_t>(b));
      k.prune();
    }
    both[1].kernel.streams = both[0].kernel.streams, both[1].kernel.sites = both[0].kernel.sites;
    return both;
  }
  collapse_axes(*entry.kernel);
  flatten_sums(*entry.kernel);
  KernelTarget target = target_;
  if (is_product(*entry.kernel)) {
    if (target.library_products)
      target.divide_rows = target.divide_columns = {.points = 0};
    else if (trips(*entry.kernel, bits(entry.kernel->outer)) >= target.divide_rows.points)
      target.divide_rows = target.divide_columns = target.divide_products;
  }
  return divide_reductions(std::move(*entry.kernel), target);
}

void KernelCache::finish(Entry& entry) {
  entry.kernel->streams = static_cast<int>(entry.streams.size());
  entry.kernel->sites = static_cast<int>(entry.sites.size());
  for (DividedKernel& divided : divide(entry)) {
    Kernel& kernel = divided.kernel;
    collapse_axes(kernel);
    find_contraction(kernel);
    if (target_.keeps_rows) keep_rows(kernel);
    if (target_.overwrites_rows) store_points_first(kernel);
    const std::string problem = verify(kernel);
    EINC_CHECK(problem.empty(), "{}\n{}", problem, to_string(kernel));
    Finished finished{nullptr, {}, std::move(divided.parts)};
    for (uint16_t b : divided.buffers) finished.buffers.push_back(b == DividedKernel::kParts ? kPartsNumber : entry.buffers[b]);
    finished.kernel = std::make_shared<const Kernel>(std::move(kernel));
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
  const auto nodes_of = [&](const std::vector<uint32_t>& numbers) {
    std::vector<NodeId> nodes;
    for (uint32_t number : numbers) nodes.push_back(node_of(number, group));
    return nodes;
  };
  std::vector<GraphKernel> kernels;
  for (const Finished& k : known.finished)
    kernels.push_back({k.kernel, nodes_of(k.buffers), nodes_of(known.streams), nodes_of(known.sites), k.parts, group});
  return kernels;
}

}  // namespace einc
