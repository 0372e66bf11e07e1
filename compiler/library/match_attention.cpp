// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/match_attention.h"

#include <limits>

#include "compiler/library/attention_formula.h"
#include "compiler/library/attention_heads.h"
#include "runtime/base/dtype.h"

namespace einc {
namespace {

class AttentionMatcher {
 public:
  explicit AttentionMatcher(const Kernel& kernel) : kernel_(kernel), a_(*kernel.attention), f_(kernel) {}

  std::optional<AttentionForward> forward() {
    AttentionForward match;
    einc_attention_problem& p = match.problem;
    const auto scores = f_.steps(AttentionPart::scores), folds = f_.steps(AttentionPart::fold), mixes = f_.steps(AttentionPart::mix);
    if (a_.steps.size() != 4 || scores.size() != 1 || folds.size() != 2 || mixes.size() != 1) return std::nullopt;
    const auto probability = f_.probability(mixes[0]->left);
    if (!probability || !is_softmax(*probability)) return std::nullopt;
    if (!set_scores(p, f_.peel(probability->x, -std::numeric_limits<double>::infinity()), *scores[0])) return std::nullopt;
    const auto q = load(scores[0]->left), k = load(scores[0]->right), v = load(mixes[0]->right), o = stored(*mixes[0]);
    if (!q || !k || !v || !o || scores[0]->over.size() != 1 || mixes[0]->free.size() != 1) return std::nullopt;
    match.q = *q, match.k = *k, match.v = *v, match.o = *o;
    const AxisId d = scores[0]->over[0], e = mixes[0]->free[0];
    std::vector<AttentionTensor> tensors{
        {*q, a_.row, d, false, &p.q}, {*k, a_.key, d, true, &p.k}, {*v, a_.key, e, true, &p.v}, {*o, a_.row, e, false, &p.o}};
    for (const AttentionStep* fold : folds) {
      if (fold->stores.empty()) continue;
      match.log_sum = log_sum(*fold, *probability);
      if (!match.log_sum) return std::nullopt;
    }
    if (match.log_sum) tensors.push_back({*match.log_sum, a_.row, std::nullopt, false, &p.log_sum});
    p.keeps_log_sum = match.log_sum ? 1 : 0;
    p.direction = EINC_ATTENTION_FORWARD;
    set_sizes(p, d, e);
    // What a forward leaves of a row fills its buffer.
    if (match.log_sum && kernel_.buffers[match.log_sum->buffer].count != rows()) return std::nullopt;
    return finish(tensors, p) ? std::optional(match) : std::nullopt;
  }

  // What both kernels of a backward have: two products of rows with keys, and of what is made of those the gradient of the scores.
  struct Gradient {
    einc_attention_problem problem{};
    AttentionPlace q, k, v, d_o, log_sum;
    ValueId delta = kNoValue;
    AxisId d = 0, e = 0;
  };
  std::optional<Gradient> gradient(ValueId d_scores) {
    Gradient g;
    const auto scores = f_.steps(AttentionPart::scores);
    if (scores.size() != 2) return std::nullopt;
    const AttentionFormula::Peeled outer = f_.peel(d_scores, 0);
    const auto subtraction = [&](ValueId id) { return f_.is_map(f_.unrounded(id), MapFn::sub); };
    const auto factor = f_.other_factor(outer.value, subtraction);
    if (!factor) return std::nullopt;
    const auto probability = f_.exponential(*factor);
    if (!probability) return std::nullopt;
    const auto& x = kernel_.values[outer.value].operands;
    const auto& terms = kernel_.values[f_.unrounded(subtraction(x[0]) ? x[0] : x[1])].operands;
    const auto inner = f_.peel(probability->x, -std::numeric_limits<double>::infinity());
    const auto of_keys = f_.reduction(inner.value), of_values = f_.reduction(terms[0]);
    if (!of_keys || !of_values || of_keys == of_values || inner.scale != outer.scale || inner.causal != outer.causal) return std::nullopt;
    g.delta = terms[1];
    const AttentionStep &qk = *scores[scores[0]->reduction == of_keys ? 0 : 1], &ov = *scores[scores[0]->reduction == of_keys ? 1 : 0];
    if (!set_scores(g.problem, inner, qk) || ov.reduction != of_values || qk.over.size() != 1 || ov.over.size() != 1) return std::nullopt;
    const auto q = load(qk.left), k = load(qk.right), d_o = load(ov.left), v = load(ov.right);
    const auto log_sum = load(probability->max);
    if (!q || !k || !d_o || !v || !log_sum) return std::nullopt;
    g.q = *q, g.k = *k, g.v = *v, g.d_o = *d_o, g.log_sum = *log_sum, g.d = qk.over[0], g.e = ov.over[0];
    if (kernel_.buffers[g.log_sum.buffer].dtype != DType::f32) return std::nullopt;
    p_ = *probability;
    g.problem.direction = EINC_ATTENTION_BACKWARD;
    g.problem.deterministic = 1;
    set_sizes(g.problem, g.d, g.e);
    return g;
  }

  // d_q, and where `delta` is read.
  std::optional<AttentionPlace> of_queries(einc_attention_problem& p, AttentionPlace& delta) {
    const auto mixes = f_.steps(AttentionPart::mix);
    if (a_.steps.size() != 3 || mixes.size() != 1 || mixes[0]->free.size() != 1) return std::nullopt;
    const auto g = gradient(mixes[0]->left);
    const auto read = g ? load(g->delta) : std::nullopt, d_q = stored(*mixes[0]);
    if (!read || !d_q || !same_keys(*mixes[0], g->k, g->d)) return std::nullopt;
    delta = *read;
    p = g->problem;
    const std::vector<AttentionTensor> tensors{
        {g->q, a_.row, g->d, false, &p.q}, {g->k, a_.key, g->d, true, &p.k}, {*d_q, a_.row, mixes[0]->free[0], false, &p.d_q}};
    return finish(tensors, p) ? d_q : std::nullopt;
  }

  std::optional<AttentionBackward> of_keys() {
    const auto gathers = f_.steps(AttentionPart::gather);
    if (a_.steps.size() != 4 || gathers.size() != 2) return std::nullopt;
    for (const size_t dk : {size_t{0}, size_t{1}}) {
      const AttentionStep &to_k = *gathers[dk], &to_v = *gathers[1 - dk];
      const auto g = gradient(to_k.left);
      if (!g || to_k.free.size() != 1 || to_v.free.size() != 1) continue;
      const auto weight = f_.exponential(to_v.left);
      if (!weight || weight->exponential != p_.exponential) return std::nullopt;
      const auto d_k = stored(to_k), d_v = stored(to_v), delta = load(g->delta);
      if (!d_k || !d_v || !delta || !same_rows(to_k, g->q, g->d) || !same_rows(to_v, g->d_o, g->e)) return std::nullopt;
      AttentionBackward match;
      match.problem = g->problem;
      match.q = g->q, match.k = g->k, match.v = g->v, match.d_o = g->d_o, match.log_sum = g->log_sum;
      match.d_k = *d_k, match.d_v = *d_v, match.delta = *delta;
      einc_attention_problem& p = match.problem;
      const std::vector<AttentionTensor> tensors{{g->q, a_.row, g->d, false, &p.q},
                                                 {g->k, a_.key, g->d, true, &p.k},
                                                 {g->v, a_.key, g->e, true, &p.v},
                                                 {g->d_o, a_.row, g->e, false, &p.d_o},
                                                 {*d_k, a_.key, to_k.free[0], true, &p.d_k},
                                                 {*d_v, a_.key, to_v.free[0], true, &p.d_v},
                                                 {g->log_sum, a_.row, std::nullopt, false, &p.log_sum}};
      return finish(tensors, p) ? std::optional(match) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  bool is_softmax(const AttentionFormula::Probability& p) const {
    const auto max = f_.reduction(p.max), sum = f_.reduction(p.sum);
    if (!max || !sum) return false;
    const Accumulation &most = kernel_.reductions[*max], &total = kernel_.reductions[*sum];
    return most.fold == Fold::max && f_.unrounded(most.value) == f_.unrounded(p.x) && total.fold == Fold::sum &&
           total.value == p.exponential;
  }

  // max + log(sum), stored with the fold of the sum.
  std::optional<AttentionPlace> log_sum(const AttentionStep& fold, const AttentionFormula::Probability& p) const {
    if (fold.stores.size() != 1) return std::nullopt;
    const Store& s = fold.stores[0];
    if (s.mode != StoreMode::set || !s.index.dynamic.empty() || !f_.is_map(s.value, MapFn::add)) return std::nullopt;
    const auto& terms = kernel_.values[s.value].operands;
    if (f_.reduction(terms[0]) != f_.reduction(p.max) || !f_.is_map(terms[1], MapFn::log)) return std::nullopt;
    if (f_.reduction(kernel_.values[terms[1]].operands[0]) != f_.reduction(p.sum)) return std::nullopt;
    if (kernel_.buffers[s.buffer].dtype != DType::f32) return std::nullopt;
    return AttentionPlace{s.buffer, s.index.affine};
  }

  bool set_scores(einc_attention_problem& p, const AttentionFormula::Peeled& scores, const AttentionStep& step) const {
    p.scale = scores.scale;
    p.mask = scores.causal ? EINC_ATTENTION_CAUSAL : EINC_ATTENTION_NO_MASK;
    return f_.reduction(scores.value) == step.reduction && scores.scale > 0;
  }

  void set_sizes(einc_attention_problem& p, AxisId d, AxisId e) const {
    p.queries = kernel_.extent(a_.row), p.keys = kernel_.extent(a_.key);
    p.head_size = kernel_.extent(d), p.value_size = kernel_.extent(e);
  }

  int64_t rows() const { return trips(kernel_, bits(a_.batch) | bits(a_.turns) | bit(a_.row)); }

  bool finish(const std::vector<AttentionTensor>& tensors, einc_attention_problem& p) const {
    const DType dtype = kernel_.buffers[tensors[0].place.buffer].dtype;
    if (dtype != DType::bf16 && dtype != DType::f16) return false;
    for (const AttentionTensor& t : tensors)
      if (kernel_.buffers[t.place.buffer].dtype != (t.inner ? dtype : DType::f32)) return false;
    p.dtype = dtype == DType::bf16 ? EINC_ATTENTION_BF16 : EINC_ATTENTION_F16;
    return set_heads(kernel_, tensors, p);
  }

  std::optional<AttentionPlace> load(ValueId id) const {
    const Scalar& v = kernel_.values[f_.unrounded(id)];
    if (v.kind != ScalarKind::load || !v.guards.empty() || !v.index.dynamic.empty()) return std::nullopt;
    return AttentionPlace{v.slot, v.index.affine};
  }

  // Where a step's reduction goes, as it is.
  std::optional<AttentionPlace> stored(const AttentionStep& step) const {
    if (step.stores.size() != 1) return std::nullopt;
    const Store& s = step.stores[0];
    if (s.mode != StoreMode::set || !s.index.dynamic.empty() || f_.reduction(s.value) != step.reduction) return std::nullopt;
    return AttentionPlace{s.buffer, s.index.affine};
  }

  // The same elements, their inner axis by another name.
  static bool same(const AttentionPlace& a, const AttentionPlace& b, AxisId a_inner, AxisId b_inner) {
    const auto without = [](const Affine& index, AxisId axis) { return index + Affine::of_axis(axis, -index.coefficient(axis)); };
    return a.buffer == b.buffer && a.index.coefficient(a_inner) == b.index.coefficient(b_inner) &&
           without(a.index, a_inner) == without(b.index, b_inner);
  }
  bool same_keys(const AttentionStep& mix, const AttentionPlace& k, AxisId d) const {
    const auto right = load(mix.right);
    return right && same(*right, k, mix.free[0], d);
  }
  bool same_rows(const AttentionStep& gather, const AttentionPlace& rows, AxisId inner) const {
    const auto right = load(gather.right);
    return right && same(*right, rows, gather.free[0], inner);
  }

  const Kernel& kernel_;
  const Attention& a_;
  const AttentionFormula f_;
  AttentionFormula::Probability p_;  // of the gradient
};

}  // namespace

bool same(const einc_attention_steps& a, const einc_attention_steps& b) { return a.batch == b.batch && a.head == b.head && a.row == b.row; }

std::optional<AttentionForward> match_attention_forward(const Kernel& kernel) {
  if (!kernel.attention) return std::nullopt;
  return AttentionMatcher(kernel).forward();
}

std::optional<AttentionBackward> match_attention_backward(const Kernel& rows, const Kernel& keys) {
  if (!rows.attention || !keys.attention) return std::nullopt;
  einc_attention_problem of_rows{};
  AttentionPlace delta;
  const auto d_q = AttentionMatcher(rows).of_queries(of_rows, delta);
  auto match = d_q ? AttentionMatcher(keys).of_keys() : std::nullopt;
  if (!match) return std::nullopt;
  einc_attention_problem& p = match->problem;
  if (!same(of_rows.q, p.q) || !same(of_rows.k, p.k) || of_rows.batch != p.batch || of_rows.key_heads != p.key_heads) return std::nullopt;
  if (of_rows.scale != p.scale || of_rows.mask != p.mask || of_rows.queries != p.queries || of_rows.keys != p.keys) return std::nullopt;
  match->d_q = *d_q;
  match->rows_delta = delta.buffer;
  p.d_q = of_rows.d_q;
  return match;
}

}  // namespace einc
