// SPDX-License-Identifier: Apache-2.0
#include "compiler/contraction/order.h"

#include <algorithm>
#include <limits>
#include <map>

#include "compiler/contraction/exact.h"
#include "runtime/base/check.h"

namespace einc {

namespace {

constexpr size_t kSubtreeTerms = 8;
constexpr int kMaxSweeps = 8;

// Labels that stand in the same operands behave as one of the product of their sizes: few are left after merging.
struct Terms {
  std::vector<LabelSet> operands;
  LabelSet output;
  std::vector<double> sizes;
};

Terms merge_labels(const ContractionProblem& problem) {
  const size_t count = problem.operands.size();
  std::vector<std::vector<bool>> membership(problem.sizes.size(), std::vector<bool>(count + 1));
  for (size_t t = 0; t < count; ++t)
    for (const int label : problem.operands[t]) membership[static_cast<size_t>(label)][t] = true;
  for (const int label : problem.output) membership[static_cast<size_t>(label)][count] = true;
  std::map<std::vector<bool>, double> merged;
  for (size_t label = 0; label < membership.size(); ++label) merged.try_emplace(membership[label], 1).first->second *= problem.sizes[label];

  const size_t words = (merged.size() + 63) / 64;
  Terms terms{std::vector<LabelSet>(count, LabelSet(words)), LabelSet(words), {}};
  for (const auto& [members, size] : merged) {
    const size_t label = terms.sizes.size();
    for (size_t t = 0; t <= count; ++t)
      if (members[t]) (t == count ? terms.output : terms.operands[t])[label / 64] |= uint64_t{1} << (label % 64);
    terms.sizes.push_back(size);
  }
  return terms;
}

struct TreeNode {
  LabelSet kept;
  int left = -1, right = -1;  // -1: an operand
};

// A contraction tree under construction: nodes 0 .. n-1 are the operands.
class Tree {
 public:
  Tree(const Terms& terms, const SizeProducts& sizes) : terms_(terms), sizes_(sizes), leaves_(terms.operands.size()) {
    for (const LabelSet& labels : terms.operands) nodes_.push_back({labels, -1, -1});
  }

  // Joins, again and again, the pair for which (elements of the result) - weight * (elements of the two) is least;
  // pairs without a common label only when nothing else is left.
  void build_greedily(double weight) {
    std::vector<int> open;
    for (size_t t = 0; t < leaves_; ++t) open.push_back(static_cast<int>(t));
    Occurrences occurs = count_labels(open);
    std::vector<Pair> pairs;
    for (size_t i = 0; i < open.size(); ++i)
      for (size_t j = i + 1; j < open.size(); ++j) pairs.push_back(pair_of(open[i], open[j], occurs, weight));
    while (open.size() > 1) {
      const Pair best = *std::min_element(pairs.begin(), pairs.end());
      const int joined = static_cast<int>(nodes_.size());
      nodes_.push_back({kept_of(best.a, best.b, occurs), best.a, best.b});
      std::erase_if(pairs, [&](const Pair& p) { return p.a == best.a || p.a == best.b || p.b == best.a || p.b == best.b; });
      std::erase_if(open, [&](int id) { return id == best.a || id == best.b; });
      open.push_back(joined);
      occurs = count_labels(open);
      for (const int other : open)
        if (other != joined) pairs.push_back(pair_of(other, joined, occurs, weight));
    }
  }

  // Replaces small subtrees by the best ones over the same terms until none gets better.
  void improve() {
    bool better = true;
    for (int sweep = 0; sweep < kMaxSweeps && better; ++sweep) {
      better = false;
      for (size_t id = nodes_.size(); id-- > leaves_;) better = improve_below(static_cast<int>(id)) || better;
    }
  }

  TreeCost cost() const {
    TreeCost total;
    for (size_t id = leaves_; id < nodes_.size(); ++id) total = total + step_cost(nodes_[id]);
    return total;
  }

  std::vector<ContractionStep> steps() const {
    std::vector<ContractionStep> result;
    emit(static_cast<int>(nodes_.size()) - 1, result);
    return result;
  }

 private:
  struct Pair {
    int a, b;
    bool outer;
    double score;
    friend bool operator<(const Pair& x, const Pair& y) { return x.outer != y.outer ? y.outer : x.score < y.score; }
  };
  // Labels that at least two, and at least three, of the open terms have; the output counts as a term.
  struct Occurrences {
    LabelSet twice, thrice;
  };

  const TreeNode& node(int id) const { return nodes_[static_cast<size_t>(id)]; }
  TreeNode& node(int id) { return nodes_[static_cast<size_t>(id)]; }
  bool is_leaf(int id) const { return node(id).left < 0; }

  Occurrences count_labels(const std::vector<int>& open) const {
    LabelSet once = terms_.output, twice(once.size()), thrice(once.size());
    for (const int id : open)
      for (size_t w = 0; w < once.size(); ++w) {
        const uint64_t labels = node(id).kept[w];
        thrice[w] |= twice[w] & labels;
        twice[w] |= once[w] & labels;
        once[w] |= labels;
      }
    return {twice, thrice};
  }

  LabelSet kept_of(int a, int b, const Occurrences& occurs) const {
    const LabelSet &x = node(a).kept, &y = node(b).kept;
    LabelSet kept(x.size());
    for (size_t w = 0; w < kept.size(); ++w) kept[w] = ((x[w] ^ y[w]) & occurs.twice[w]) | (x[w] & y[w] & occurs.thrice[w]);
    return kept;
  }

  Pair pair_of(int a, int b, const Occurrences& occurs, double weight) const {
    const double result = sizes_.product(kept_of(a, b, occurs));
    return {a, b, !intersects(node(a).kept, node(b).kept), result - weight * (sizes_.product(node(a).kept) + sizes_.product(node(b).kept))};
  }

  TreeCost step_cost(const TreeNode& step) const {
    const LabelSet both = unite(node(step.left).kept, node(step.right).kept);
    return {sizes_.product(both) * (both == step.kept ? 1 : 2), sizes_.product(step.kept)};
  }

  bool improve_below(int root) {
    std::vector<int> frontier{node(root).left, node(root).right};
    std::vector<int> inner{root};
    while (frontier.size() < kSubtreeTerms) {
      const auto largest = std::max_element(frontier.begin(), frontier.end(), [&](int a, int b) {
        return (is_leaf(a) ? -1 : sizes_.product(node(a).kept)) < (is_leaf(b) ? -1 : sizes_.product(node(b).kept));
      });
      if (is_leaf(*largest)) break;
      const int opened = *largest;
      inner.push_back(opened);
      *largest = node(opened).left;
      frontier.push_back(node(opened).right);
    }
    if (frontier.size() < 3) return false;
    TreeCost old;
    for (const int id : inner) old = old + step_cost(node(id));
    std::vector<LabelSet> terms;
    for (const int id : frontier) terms.push_back(node(id).kept);
    const ExactOrder best = exact_order(terms, node(root).kept, sizes_);
    if (!(best.cost.flops < old.flops * (1 - 1e-12))) return false;
    rebuild(frontier, inner, best.steps, node(root).kept);
    return true;
  }

  // Writes the new steps into the nodes of the old ones; the root keeps its node.
  void rebuild(const std::vector<int>& frontier, std::vector<int> inner, const std::vector<ContractionStep>& steps,
               const LabelSet& root_kept) {
    std::reverse(inner.begin(), inner.end());  // the root last, as in `steps`
    std::vector<int> ids = frontier;
    ids.insert(ids.end(), inner.begin(), inner.end());
    std::vector<bool> used(ids.size());
    for (size_t k = 0; k < steps.size(); ++k) {
      const int left = ids[static_cast<size_t>(steps[k].left)], right = ids[static_cast<size_t>(steps[k].right)];
      used[static_cast<size_t>(steps[k].left)] = used[static_cast<size_t>(steps[k].right)] = true;
      LabelSet outside = root_kept;
      for (size_t t = 0; t < frontier.size() + k; ++t)
        if (!used[t]) outside = unite(outside, node(ids[t]).kept);
      LabelSet kept = unite(node(left).kept, node(right).kept);
      for (size_t w = 0; w < kept.size(); ++w) kept[w] &= outside[w];
      node(inner[k]) = {kept, left, right};
    }
  }

  int emit(int id, std::vector<ContractionStep>& steps) const {
    if (is_leaf(id)) return id;
    const int left = emit(node(id).left, steps);
    const int right = emit(node(id).right, steps);
    steps.push_back({left, right});
    return static_cast<int>(leaves_ + steps.size()) - 1;
  }

  const Terms& terms_;
  const SizeProducts& sizes_;
  size_t leaves_;
  std::vector<TreeNode> nodes_;  // the last one is the root
};

}  // namespace

ContractionOrder choose_order(const ContractionProblem& problem) {
  const size_t count = problem.operands.size();
  EINC_CHECK(count >= 1 && count <= kMaxContractionOperands, "contraction order of {} operands", count);
  if (count == 1) return {};
  const Terms terms = merge_labels(problem);
  const SizeProducts sizes(terms.sizes);
  if (count <= kExactOperands) {
    ExactOrder best = exact_order(terms.operands, terms.output, sizes);
    return {std::move(best.steps), best.cost.flops, OrderMethod::exact};
  }
  ContractionOrder best{{}, std::numeric_limits<double>::infinity(), OrderMethod::greedy};
  for (const double weight : {0.0, 0.5, 1.0, 2.0}) {
    Tree tree(terms, sizes);
    tree.build_greedily(weight);
    tree.improve();
    const TreeCost cost = tree.cost();
    if (best.steps.empty() || cost.flops < best.flops) best = {tree.steps(), cost.flops, OrderMethod::greedy};
  }
  return best;
}

}  // namespace einc
