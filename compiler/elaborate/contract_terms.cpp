// SPDX-License-Identifier: Apache-2.0
// The arithmetic of an einsum: labels of one term alone are summed first (a reduction), then terms are joined two at a
// time, by a contraction where the step sums over something and by an elementwise product where it does not.
#include <algorithm>

#include "compiler/contraction/order.h"
#include "compiler/elaborate/pattern_lower.h"

namespace einc {

namespace {

bool contains(const std::vector<int>& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

class TermJoiner {
 public:
  TermJoiner(Context& context, const SolvedPattern& pattern, std::vector<LabelledTensor> terms, const std::vector<int>& kept)
      : context_(context), build_(context.build()), pattern_(pattern), terms_(std::move(terms)), alive_(terms_.size(), true), kept_(kept) {}

  size_t count() const { return terms_.size(); }
  const LabelledTensor& last() const { return terms_.back(); }
  size_t last_rank() const { return last_rank_; }
  const Poly& flops() const { return flops_; }

  void sum_lone_labels() {
    for (size_t t = 0; t < terms_.size(); ++t) {
      const std::vector<int> needed = needed_outside({t});
      const AxisList lone = terms_[t].axes_without(needed);
      if (lone.empty()) continue;
      flops_ += elements(terms_[t].labels);
      terms_[t] = {build_.reduce(ReduceFn::sum, terms_[t].node, lone), terms_[t].labels_in(needed)};
    }
  }

  // Joins two terms into a new one at the end. False when the result has too many axes.
  bool join(const ContractionStep& step) {
    const size_t l = static_cast<size_t>(step.left), r = static_cast<size_t>(step.right);
    const LabelledTensor left = terms_[l], right = terms_[r];
    const std::vector<int> needed = needed_outside({l, r});
    alive_[l] = alive_[r] = false;
    const std::vector<int> result = result_labels(left, right, needed);
    last_rank_ = result.size();
    if (last_rank_ > static_cast<size_t>(kMaxRank)) return false;
    std::vector<int> summed;
    for (const int label : left.labels)
      if (!contains(needed, label)) summed.push_back(label);
    std::vector<int> all = result;
    all.insert(all.end(), summed.begin(), summed.end());
    flops_ += elements(all) * Poly(summed.empty() ? 1 : 2);
    terms_.push_back({summed.empty() ? multiply(left, right, result) : contract(left, right, all, result.size()), result});
    alive_.push_back(true);
    return true;
  }

  ContractionOrder order() const {
    ContractionProblem problem;
    for (const LabelledTensor& term : terms_) problem.operands.push_back(term.labels);
    problem.output = kept_;
    for (const PatternLabel& label : pattern_.labels) {
      const auto value = label.size.to_double(context_.order_values());
      problem.sizes.push_back(value && *value >= 1 ? *value : 1);
    }
    return choose_order(problem);
  }

 private:
  Poly elements(const std::vector<int>& labels) const {
    Poly product(1);
    for (const int label : labels) product *= pattern_.size(label);
    return product;
  }

  std::vector<int> needed_outside(std::initializer_list<size_t> inside) const {
    std::vector<int> needed = kept_;
    for (size_t t = 0; t < terms_.size(); ++t)
      if (alive_[t] && std::find(inside.begin(), inside.end(), t) == inside.end())
        needed.insert(needed.end(), terms_[t].labels.begin(), terms_[t].labels.end());
    return needed;
  }

  // The last step gives the output's order; others shared labels, then the left's, then the right's.
  std::vector<int> result_labels(const LabelledTensor& left, const LabelledTensor& right, const std::vector<int>& needed) const {
    std::vector<int> result;
    if (std::count(alive_.begin(), alive_.end(), true) == 0) {
      for (const int label : kept_)
        if (left.has(label) || right.has(label)) result.push_back(label);
      return result;
    }
    const auto add = [&](const LabelledTensor& from, const LabelledTensor& other, bool shared) {
      for (const int label : from.labels)
        if (contains(needed, label) && other.has(label) == shared) result.push_back(label);
    };
    add(left, right, true);
    add(left, right, false);
    add(right, left, false);
    return result;
  }

  static AxisList positions(const std::vector<int>& labels, const std::vector<int>& all) {
    AxisList list;
    for (const int label : labels) list.push_back(static_cast<int>(std::find(all.begin(), all.end(), label) - all.begin()));
    return list;
  }

  NodeId contract(const LabelledTensor& left, const LabelledTensor& right, const std::vector<int>& all, size_t out_rank) {
    const NodeId node =
        build_.contract(left.node, right.node, positions(left.labels, all), positions(right.labels, all), static_cast<int>(out_rank));
    for (size_t i = 0; i < out_rank; ++i) build_.graph()[node].type.axes[i] = pattern_.axis(all[i]);
    return node;
  }

  NodeId multiply(const LabelledTensor& left, const LabelledTensor& right, const std::vector<int>& result) {
    const NodeId operands[] = {left.node, right.node};
    const AxisList maps[] = {positions(left.labels, result), positions(right.labels, result)};
    const DType dtypes[] = {build_.type(left.node).dtype, build_.type(right.node).dtype};
    std::vector<Axis> axes;
    for (const int label : result) axes.push_back(pattern_.axis(label));
    return build_.map(MapFn::mul, operands, maps, std::move(axes), Builder::map_dtype(MapFn::mul, dtypes));
  }

  Context& context_;
  Builder& build_;
  const SolvedPattern& pattern_;
  std::vector<LabelledTensor> terms_;
  std::vector<bool> alive_;
  const std::vector<int>& kept_;
  Poly flops_;
  size_t last_rank_ = 0;
};

// "((a b, b c), c d)"
std::string order_text(const ContractionOrder& order, const std::vector<std::string>& texts) {
  std::vector<std::string> terms = texts;
  for (const ContractionStep& step : order.steps)
    terms.push_back(fmt::format("({}, {})", terms[static_cast<size_t>(step.left)], terms[static_cast<size_t>(step.right)]));
  return terms.back();
}

}  // namespace

std::optional<LabelledTensor> contract_terms(Context& context, const SolvedPattern& pattern, std::vector<LabelledTensor> terms,
                                             const std::vector<int>& kept, const std::vector<std::string>& texts, Span where) {
  TermJoiner joiner(context, pattern, std::move(terms), kept);
  joiner.sum_lone_labels();
  const size_t count = joiner.count();
  if (count == 1) return joiner.last();
  const ContractionOrder order = count == 2 ? ContractionOrder{{{0, 1}}, 0, OrderMethod::exact} : joiner.order();
  for (const ContractionStep& step : order.steps)
    if (!joiner.join(step)) {
      context.diagnostics()
          .report(Code::too_many_axes, where, joiner.last_rank(), kMaxRank)
          .hint("this is an intermediate result of the einsum: write it in several steps");
      return std::nullopt;
    }
  if (count >= 3) {
    std::string written;
    for (const std::string& text : texts) written += (written.empty() ? "" : ", ") + text;
    context.build().graph().plans.push_back({context.locate(where), written, order_text(order, texts), joiner.flops(),
                                             order.method == OrderMethod::exact ? "exact" : "greedy, improved"});
  }
  return joiner.last();
}

}  // namespace einc
