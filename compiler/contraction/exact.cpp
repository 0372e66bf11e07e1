// SPDX-License-Identifier: Apache-2.0
#include "compiler/contraction/exact.h"

#include <limits>

#include "runtime/base/check.h"

namespace einc {

namespace {

// What every subset of the terms keeps once it is contracted to one: labels that stand outside it too.
class SubsetSearch {
 public:
  SubsetSearch(const std::vector<LabelSet>& terms, const LabelSet& needed, const SizeProducts& sizes)
      : count_(terms.size()),
        words_(needed.size()),
        sizes_(sizes),
        kept_((size_t{1} << count_) * words_),
        best_(size_t{1} << count_),
        split_(best_.size()) {
    std::vector<uint64_t> united(kept_.size());
    const size_t all = best_.size() - 1;
    for (size_t set = 1; set <= all; ++set)
      for (size_t w = 0; w < words_; ++w) united[set * words_ + w] = united[(set & (set - 1)) * words_ + w] | terms[lowest(set)][w];
    for (size_t set = 1; set <= all; ++set)
      for (size_t w = 0; w < words_; ++w) {
        // a single term is as it was given, also where it holds a label of its own
        const uint64_t outside = needed[w] | united[(all ^ set) * words_ + w];
        kept_[set * words_ + w] = united[set * words_ + w] & ((set & (set - 1)) == 0 ? ~uint64_t{0} : outside);
      }
    for (size_t set = 1; set <= all; ++set)
      if ((set & (set - 1)) != 0) search(set);
  }

  ExactOrder result() const {
    ExactOrder order;
    order.cost = best_.back();
    emit(best_.size() - 1, order.steps);
    return order;
  }

 private:
  static size_t lowest(size_t set) { return static_cast<size_t>(__builtin_ctzll(set)); }

  void search(size_t set) {
    const size_t first = set & (~set + 1);
    const size_t rest = set ^ first;
    const TreeCost result{0, sizes_.product([&](size_t w) { return kept_[set * words_ + w]; })};
    TreeCost best{std::numeric_limits<double>::infinity(), 0};
    size_t split = first;
    for (size_t sub = rest; sub != 0;) {
      sub = (sub - 1) & rest;
      const size_t left = first | sub;
      const size_t right = set ^ left;
      const TreeCost below = best_[left] + best_[right] + result;
      if (!(below < best)) continue;
      const TreeCost cost = below + TreeCost{step_flops(left, right, set), 0};
      if (cost < best) {
        best = cost;
        split = left;
      }
    }
    best_[set] = best;
    split_[set] = split;
  }

  double step_flops(size_t left, size_t right, size_t set) const {
    const auto both = [&](size_t w) { return kept_[left * words_ + w] | kept_[right * words_ + w]; };
    bool sums = false;
    for (size_t w = 0; w < words_; ++w) sums = sums || (both(w) & ~kept_[set * words_ + w]) != 0;
    return sizes_.product(both) * (sums ? 2 : 1);
  }

  int emit(size_t set, std::vector<ContractionStep>& steps) const {
    if ((set & (set - 1)) == 0) return static_cast<int>(lowest(set));
    const int left = emit(split_[set], steps);
    const int right = emit(set ^ split_[set], steps);
    steps.push_back({left, right});
    return static_cast<int>(count_ + steps.size()) - 1;
  }

  size_t count_, words_;
  const SizeProducts& sizes_;
  std::vector<uint64_t> kept_;  // subset * words
  std::vector<TreeCost> best_;
  std::vector<size_t> split_;  // the half that holds the lowest term
};

}  // namespace

ExactOrder exact_order(const std::vector<LabelSet>& terms, const LabelSet& needed, const SizeProducts& sizes) {
  EINC_CHECK(!terms.empty() && terms.size() <= kExactOperands, "exact order of {} terms", terms.size());
  return SubsetSearch(terms, needed, sizes).result();
}

}  // namespace einc
