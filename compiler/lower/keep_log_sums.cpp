// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/keep_log_sums.h"

#include <algorithm>
#include <optional>

#include "compiler/lower/attention_formula.h"
#include "compiler/lower/prune_kernel.h"

namespace einc {
namespace {

// A forward's folds along the keys: max x, and the sum of exp(x - max).
struct RowFolds {
  size_t max = 0, sum = 0;  // steps
};

std::optional<RowFolds> row_folds(const Kernel& kernel) {
  if (!kernel.attention) return std::nullopt;
  const AttentionFormula formula(kernel);
  const std::vector<AttentionStep>& steps = kernel.attention->steps;
  RowFolds found;
  int folds = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].part != AttentionPart::fold) continue;
    const Fold fold = kernel.reductions[steps[i].reduction].fold;
    if (steps[i].stores.size() != 1 || (fold != Fold::max && fold != Fold::sum)) return std::nullopt;
    (fold == Fold::max ? found.max : found.sum) = i;
    ++folds;
  }
  if (folds != 2 || steps[found.max].part != AttentionPart::fold || steps[found.sum].part != AttentionPart::fold) return std::nullopt;
  const Store &max = steps[found.max].stores[0], &sum = steps[found.sum].stores[0];
  for (const Store* s : {&max, &sum})
    if (s->mode != StoreMode::set || !s->index.dynamic.empty() || kernel.buffers[s->buffer].dtype != DType::f32) return std::nullopt;
  if (max.index != sum.index || formula.reduction(max.value) != steps[found.max].reduction) return std::nullopt;
  if (formula.reduction(sum.value) != steps[found.sum].reduction) return std::nullopt;
  const auto weight = formula.exponential(kernel.reductions[steps[found.sum].reduction].value);
  if (!weight || formula.reduction(weight->max) != steps[found.max].reduction) return std::nullopt;
  return found;
}

class LogSums {
 public:
  LogSums(KernelList& list, const std::vector<NodeId>& roots) : list_(list), roots_(roots) {}

  void run() {
    for (size_t k = 0; k < list_.kernels.size(); ++k)
      if (const auto folds = row_folds(*list_.kernels[k].kernel)) keep(k, *folds);
  }

 private:
  uint16_t slot(const GraphKernel& k, NodeId node) const {
    return static_cast<uint16_t>(std::ranges::find(k.buffers, node) - k.buffers.begin());
  }
  bool touches(const GraphKernel& k, NodeId node) const { return slot(k, node) < k.buffers.size(); }

  void keep(size_t forward, const RowFolds& folds) {
    const GraphKernel& f = list_.kernels[forward];
    const std::vector<AttentionStep>& steps = f.kernel->attention->steps;
    const NodeId max = f.buffers[steps[folds.max].stores[0].buffer], sum = f.buffers[steps[folds.sum].stores[0].buffer];
    if (!max.valid() || !sum.valid()) return;
    for (const NodeId value : {max, sum})
      if (std::ranges::find(roots_, value) != roots_.end()) return;
    for (size_t k = 0; k < list_.kernels.size(); ++k) {
      const GraphKernel& reader = list_.kernels[k];
      if (k == forward || (!touches(reader, max) && !touches(reader, sum))) continue;
      if (!reader.kernel->attention || !reads_only_probabilities(*reader.kernel, slot(reader, max), slot(reader, sum))) return;
    }
    for (size_t k = 0; k < list_.kernels.size(); ++k)
      if (k != forward && touches(list_.kernels[k], max)) read_log_sum(list_.kernels[k], slot(list_.kernels[k], sum));
    store_log_sum(list_.kernels[forward], folds);
    list_.in_memory[sum.index] = false;
  }

  void store_log_sum(GraphKernel& f, const RowFolds& folds) const {
    Kernel kernel = *f.kernel;
    AttentionStep &max = kernel.attention->steps[folds.max], &sum = kernel.attention->steps[folds.sum];
    Scalar log, total;
    log.kind = total.kind = ScalarKind::map;
    log.fn = MapFn::log, total.fn = MapFn::add;
    log.operands = {sum.stores[0].value};
    const auto first = static_cast<ValueId>(kernel.values.size());
    total.operands = {max.stores[0].value, first};
    kernel.values.push_back(std::move(log));
    kernel.values.push_back(std::move(total));
    sum.stores[0].buffer = max.stores[0].buffer;
    sum.stores[0].value = first + 1;
    max.stores.clear();
    replace_kernel(f, std::move(kernel));
  }

  // A weight is its exponential as it is.
  void read_log_sum(GraphKernel& k, uint16_t sum) const {
    Kernel kernel = *k.kernel;
    const AttentionFormula formula(*k.kernel);
    std::vector<ValueId> now(kernel.values.size());
    for (ValueId id = 0; id < now.size(); ++id) {
      now[id] = id;
      if (kernel.values[id].kind != ScalarKind::map) continue;
      const auto weight = formula.probability(id);
      if (weight && kernel.values[weight->sum].kind == ScalarKind::load && kernel.values[weight->sum].slot == sum)
        now[id] = weight->exponential;
    }
    rename_values(kernel, now);
    replace_kernel(k, std::move(kernel));
  }

  KernelList& list_;
  const std::vector<NodeId>& roots_;
};

}  // namespace

void keep_log_sums(KernelList& list, const std::vector<NodeId>& roots) { LogSums(list, roots).run(); }

}  // namespace einc
