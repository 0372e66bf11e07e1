// SPDX-License-Identifier: Apache-2.0
// What the kernels compute is told by their steps' labels; here is told where their operands and results lie.
#include "compiler/library/attention_problem.h"

#include <algorithm>

#include "compiler/library/attention_heads.h"
#include "runtime/base/dtype.h"

namespace einc {
namespace {

class ProblemReader {
 public:
  explicit ProblemReader(const Kernel& kernel) : kernel_(kernel), a_(*kernel.attention), softmax_(*a_.softmax) {}

  std::optional<AttentionForward> forward() {
    AttentionForward made;
    einc_attention_problem& p = made.problem;
    const AttentionStep *scores = step(AttentionPart::scores, PairValue::scores), *mix = step(AttentionPart::mix, PairValue::weights);
    if (scores == nullptr || mix == nullptr || a_.steps.size() != 4) return std::nullopt;
    const auto q = load(scores->left), k = load(scores->right), v = load(mix->right), o = stored(*mix);
    if (!q || !k || !v || !o || !has_one_width(*scores) || mix->free.size() != 1) return std::nullopt;
    made.q = *q, made.k = *k, made.v = *v, made.o = *o;
    const AxisId d = scores->over[0], e = mix->free[0];
    std::vector<AttentionTensor> tensors{
        {*q, a_.row, d, false, &p.q}, {*k, a_.key, d, true, &p.k}, {*v, a_.key, e, true, &p.v}, {*o, a_.row, e, false, &p.o}};
    // Of a row nothing is stored but L.
    for (const AttentionStep& fold : a_.steps) {
      if (fold.part != AttentionPart::fold || fold.stores.empty()) continue;
      if (fold.stores.size() != 1 || fold.stores[0].buffer != softmax_.log_sums || made.log_sum) return std::nullopt;
      made.log_sum = plain(fold.stores[0]);
      if (!made.log_sum) return std::nullopt;
    }
    if (made.log_sum) tensors.push_back({*made.log_sum, a_.row, std::nullopt, false, &p.log_sum});
    p.keeps_log_sum = made.log_sum ? 1 : 0;
    p.direction = EINC_ATTENTION_FORWARD;
    set_scores(p, d, e);
    // What a forward leaves of a row fills its buffer.
    if (made.log_sum && kernel_.buffers[made.log_sum->buffer].count != rows()) return std::nullopt;
    return finish(tensors, p) ? std::optional(made) : std::nullopt;
  }

  // d_q.
  std::optional<AttentionPlace> of_queries(einc_attention_problem& p) {
    const AttentionStep *mix = step(AttentionPart::mix, PairValue::score_gradient), *scores = nullptr, *of_values = nullptr;
    if (mix == nullptr || !read_scores(scores, of_values) || a_.steps.size() != 3 || mix->free.size() != 1) return std::nullopt;
    const auto q = load(scores->left), k = load(scores->right), d_q = stored(*mix);
    if (!q || !k || !d_q) return std::nullopt;
    const AxisId d = scores->over[0];
    set_backward(p, d, of_values->over[0]);
    const std::vector<AttentionTensor> tensors{
        {*q, a_.row, d, false, &p.q}, {*k, a_.key, d, true, &p.k}, {*d_q, a_.row, mix->free[0], false, &p.d_q}};
    return finish(tensors, p) ? d_q : std::nullopt;
  }

  std::optional<AttentionBackward> of_keys() {
    const AttentionStep *to_k = step(AttentionPart::gather, PairValue::score_gradient),
                        *to_v = step(AttentionPart::gather, PairValue::weights), *scores = nullptr, *of_values = nullptr;
    if (to_k == nullptr || to_v == nullptr || !read_scores(scores, of_values) || a_.steps.size() != 4) return std::nullopt;
    if (to_k->free.size() != 1 || to_v->free.size() != 1) return std::nullopt;
    const auto q = load(scores->left), k = load(scores->right), d_o = load(of_values->left), v = load(of_values->right);
    const auto d_k = stored(*to_k), d_v = stored(*to_v), log_sum = load_of(*softmax_.log_sums);
    if (!q || !k || !d_o || !v || !d_k || !d_v || !log_sum) return std::nullopt;
    AttentionBackward made{{}, *q, *k, *v, *d_o, *log_sum, *d_k, *d_v, {}};
    einc_attention_problem& p = made.problem;
    const AxisId d = scores->over[0], e = of_values->over[0];
    set_backward(p, d, e);
    const std::vector<AttentionTensor> tensors{{*q, a_.row, d, false, &p.q},
                                               {*k, a_.key, d, true, &p.k},
                                               {*v, a_.key, e, true, &p.v},
                                               {*d_o, a_.row, e, false, &p.d_o},
                                               {*d_k, a_.key, to_k->free[0], true, &p.d_k},
                                               {*d_v, a_.key, to_v->free[0], true, &p.d_v},
                                               {*log_sum, a_.row, std::nullopt, false, &p.log_sum}};
    return finish(tensors, p) ? std::optional(made) : std::nullopt;
  }

 private:
  // The only one of its kind.
  const AttentionStep* step(AttentionPart part, PairValue pair) const {
    const AttentionStep* found = nullptr;
    for (const AttentionStep& s : a_.steps) {
      if (s.part != part || s.pair != pair) continue;
      if (found != nullptr) return nullptr;
      found = &s;
    }
    return found;
  }

  // Of a backward: the products Q K^T and dO V^T.
  bool read_scores(const AttentionStep*& scores, const AttentionStep*& of_values) const {
    scores = step(AttentionPart::scores, PairValue::scores), of_values = step(AttentionPart::scores, PairValue::weight_gradient);
    return softmax_.log_sums && softmax_.deltas && scores != nullptr && of_values != nullptr && has_one_width(*scores) &&
           has_one_width(*of_values);
  }
  static bool has_one_width(const AttentionStep& scores) { return scores.over.size() == 1; }

  void set_scores(einc_attention_problem& p, AxisId d, AxisId e) const {
    p.scale = softmax_.scale;
    p.mask = softmax_.causal ? EINC_ATTENTION_CAUSAL : EINC_ATTENTION_NO_MASK;
    p.queries = kernel_.extent(a_.row), p.keys = kernel_.extent(a_.key);
    p.head_size = kernel_.extent(d), p.value_size = kernel_.extent(e);
  }
  void set_backward(einc_attention_problem& p, AxisId d, AxisId e) const {
    p.direction = EINC_ATTENTION_BACKWARD;
    p.deterministic = 1;
    set_scores(p, d, e);
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

  ValueId before_rounding(ValueId id) const {
    while (kernel_.values[id].kind == ScalarKind::cast && is_floating(kernel_.values[id].dtype)) id = kernel_.values[id].operands[0];
    return id;
  }

  std::optional<AttentionPlace> load(ValueId id) const {
    const Scalar& v = kernel_.values[before_rounding(id)];
    if (v.kind != ScalarKind::load || !v.guards.empty() || !v.index.dynamic.empty()) return std::nullopt;
    return AttentionPlace{v.slot, v.index.affine};
  }

  // Where the buffer is read, at one place for each row.
  std::optional<AttentionPlace> load_of(uint16_t buffer) const {
    std::optional<AttentionPlace> place;
    for (ValueId id = 0; id < kernel_.values.size(); ++id) {
      if (kernel_.values[id].kind != ScalarKind::load || kernel_.values[id].slot != buffer) continue;
      const auto here = load(id);
      if (!here || (place && place->index != here->index)) return std::nullopt;
      place = here;
    }
    return place;
  }

  static std::optional<AttentionPlace> plain(const Store& s) {
    return s.mode == StoreMode::set && s.index.dynamic.empty() ? std::optional(AttentionPlace{s.buffer, s.index.affine}) : std::nullopt;
  }
  // Where a step's sum goes, as it is.
  std::optional<AttentionPlace> stored(const AttentionStep& step) const {
    if (step.stores.size() != 1) return std::nullopt;
    const Scalar& v = kernel_.values[before_rounding(step.stores[0].value)];
    return v.kind == ScalarKind::reduction && v.slot == step.reduction ? plain(step.stores[0]) : std::nullopt;
  }

  const Kernel& kernel_;
  const Attention& a_;
  const SoftmaxAttention& softmax_;
};

bool is_softmax(const Kernel& kernel) { return kernel.attention && kernel.attention->softmax; }

}  // namespace

bool same(const einc_attention_steps& a, const einc_attention_steps& b) { return a.batch == b.batch && a.head == b.head && a.row == b.row; }

std::optional<AttentionForward> attention_forward(const Kernel& kernel) {
  return is_softmax(kernel) ? ProblemReader(kernel).forward() : std::nullopt;
}

std::optional<AttentionBackward> attention_backward(const Kernel& rows, const Kernel& keys) {
  if (!is_softmax(rows) || !is_softmax(keys)) return std::nullopt;
  einc_attention_problem of_rows{};
  const auto d_q = ProblemReader(rows).of_queries(of_rows);
  auto made = d_q ? ProblemReader(keys).of_keys() : std::nullopt;
  if (!made) return std::nullopt;
  einc_attention_problem& p = made->problem;
  if (!same(of_rows.q, p.q) || !same(of_rows.k, p.k) || of_rows.batch != p.batch || of_rows.key_heads != p.key_heads) return std::nullopt;
  if (of_rows.scale != p.scale || of_rows.mask != p.mask || of_rows.queries != p.queries || of_rows.keys != p.keys) return std::nullopt;
  made->d_q = *d_q;
  p.d_q = of_rows.d_q;
  return made;
}

}  // namespace einc
