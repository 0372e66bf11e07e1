// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/attention_heads.h"

#include <algorithm>

namespace einc {
namespace {

constexpr int64_t kHeadVector = 8;  // 16-bit elements of 16 bytes

class Heads {
 public:
  Heads(const Kernel& kernel, const Affine& q, const Affine& k) : kernel_(kernel) {
    std::vector<AxisId> axes = kernel.attention->batch;
    axes.insert(axes.end(), kernel.attention->turns.begin(), kernel.attention->turns.end());
    std::erase_if(axes, [&](AxisId a) { return kernel.extent(a) == 1; });
    std::ranges::stable_sort(axes, [&](AxisId a, AxisId b) { return q.coefficient(a) > q.coefficient(b); });
    for (const AxisId a : axes) (k.coefficient(a) != 0 ? shared_ : group_).push_back(a);
  }

  bool run(const std::vector<AttentionTensor>& tensors, einc_attention_problem& problem) {
    for (size_t heads = std::min<size_t>(1, shared_.size()); heads <= shared_.size(); ++heads) {
      const auto split = shared_.end() - static_cast<std::ptrdiff_t>(heads);
      batch_.assign(shared_.begin(), split);
      key_heads_.assign(split, shared_.end());
      query_heads_ = key_heads_;
      query_heads_.insert(query_heads_.end(), group_.begin(), group_.end());
      if (!std::ranges::all_of(tensors, [&](const AttentionTensor& t) { return set_steps(t); })) continue;
      problem.batch = extent(batch_), problem.key_heads = extent(key_heads_), problem.query_heads = extent(query_heads_);
      return true;
    }
    return false;
  }

 private:
  int64_t extent(const std::vector<AxisId>& axes) const {
    int64_t count = 1;
    for (const AxisId a : axes) count *= kernel_.extent(a);
    return count;
  }

  // From one to the next of the points that the axes, outermost first, have together.
  std::optional<int64_t> step(const Affine& index, const std::vector<AxisId>& axes) const {
    for (size_t i = 0; i + 1 < axes.size(); ++i)
      if (index.coefficient(axes[i]) != index.coefficient(axes[i + 1]) * kernel_.extent(axes[i + 1])) return std::nullopt;
    if (axes.empty()) return 0;
    const int64_t last = index.coefficient(axes.back());
    return last > 0 ? std::optional(last) : std::nullopt;
  }

  bool set_steps(const AttentionTensor& t) const {
    const Affine& index = t.place.index;
    const auto batch = step(index, batch_), head = step(index, t.of_keys ? key_heads_ : query_heads_);
    if (!batch || !head) return false;
    *t.steps = {*batch, *head, index.coefficient(t.row)};
    uint64_t known = bits(batch_) | bits(t.of_keys ? key_heads_ : query_heads_) | bit(t.row) | (t.inner ? bit(*t.inner) : 0);
    for (const Affine::Term& term : index.terms)
      if (!(known >> term.axis & 1) && kernel_.extent(term.axis) > 1) return false;
    if (!t.inner) return true;
    const auto whole = [](int64_t elements) { return elements % kHeadVector == 0; };
    return index.coefficient(*t.inner) == 1 && whole(t.steps->batch) && whole(t.steps->head) && whole(t.steps->row) &&
           whole(index.constant);
  }

  const Kernel& kernel_;
  std::vector<AxisId> shared_, group_;  // axes of queries that keys have too, and that they lack
  std::vector<AxisId> batch_, key_heads_, query_heads_;
};

}  // namespace

bool set_heads(const Kernel& kernel, const std::vector<AttentionTensor>& tensors, einc_attention_problem& problem) {
  return Heads(kernel, tensors[0].place.index, tensors[1].place.index).run(tensors, problem);
}

}  // namespace einc
