// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/attention_kernel.h"

#include <algorithm>
#include <bit>

#include "compiler/fuse/evaluate.h"
#include "compiler/lower/attention.h"

namespace einc {
namespace {

constexpr int64_t kBlockRows = 32, kBlockKeys = 12;
constexpr int64_t kFewestRows = 4;   // with fewer, lanes along rows are idle
constexpr int64_t kOneRowKeys = 16;  // in a block, when lanes run along the keys of one row

class AttentionBuilder {
 public:
  AttentionBuilder(const BoundGraph& graph, const FoundAttention& found, const AttentionNodes& nodes, const std::vector<bool>& member,
                   const std::vector<bool>& in_memory, LoopSpace& space)
      : graph_(graph),
        found_(found),
        nodes_(nodes),
        space_(space),
        kernel_(out_.kernel),
        evaluator_(graph, member, in_memory, space, out_, Contractions::any) {}

  BuiltKernel run(const std::vector<NodeId>& stored, ReadValues read) {
    if (read == ReadValues::made_again) evaluator_.read_again();
    const Shape& shape = graph_.shape(found_.scores);
    for (size_t i = 0; i < shape.size(); ++i)
      units_.push_back(space_.add(kernel_, shape[i], graph_[found_.scores].type.axis(static_cast<int>(i)).name));
    set_loops();
    std::vector<Store> stores;
    for (NodeId id : stored) {
      const Indices at = place_of(id);
      const ValueId value = evaluator_.value_of(id, at);
      stores.push_back({evaluator_.buffer(id, BufferAccess::write), evaluator_.address(id, at), value, StoreMode::set});
    }
    sort_axes();
    for (Store& s : stores) put(std::move(s));
    if (found_.softmax) label(*found_.softmax);
    kernel_.streams = static_cast<int>(out_.streams.size());
    kernel_.sites = static_cast<int>(out_.sites.size());
    divide_by_multiplying(kernel_);
    find_key_bounds(kernel_, found_.is_lone_backward());
    if (const std::string problem = verify(kernel_); !problem.empty()) throw Refused{problem};
    return std::move(out_);
  }

 private:
  Indices indices(const std::vector<int>& axes) const {
    Indices at;
    for (int axis : axes) at.push_back(axis < 0 ? Subscript() : unit(axis));
    return at;
  }
  Subscript unit(int axis) const { return space_.unit(units_[static_cast<size_t>(axis)]).index; }

  bool is_result(NodeId id) const { return std::binary_search(nodes_.results.begin(), nodes_.results.end(), id); }

  // Folds and results run over the loops that the scores have.
  void set_loops() {
    for (NodeId id : nodes_.members) {
      if (graph_[id].op == Op::reduce) evaluator_.set_reduced_index(id, {unit(found_.key)});
      if (!is_result(id)) continue;
      const auto [labels, axes] = pair_operand(id);
      const auto rank = static_cast<int>(graph_.shape(id).size());
      for (int i = 0; i < labels->size(); ++i)
        if ((*labels)[i] >= rank && (*axes)[static_cast<size_t>(i)] >= 0)
          evaluator_.set_summed_index(id, (*labels)[i], unit((*axes)[static_cast<size_t>(i)]));
    }
  }

  // Of a contraction that reads a value per row and key: that operand's labels and axes.
  std::pair<const AxisList*, const std::vector<int>*> pair_operand(NodeId id) const {
    const ContractAttr& attr = graph_[id].as<ContractAttr>();
    for (size_t k = 0; k < 2; ++k) {
      const auto axes = found_.axes.find(graph_[id].operands[k].index);
      if (axes != found_.axes.end() && std::find(axes->second.begin(), axes->second.end(), found_.key) != axes->second.end())
        return {k == 0 ? &attr.left : &attr.right, &axes->second};
    }
    throw Refused{"a contraction reads no scores"};
  }

  Indices place_of(NodeId id) {
    if (!is_result(id)) {
      const auto axes = found_.axes.find(id.index);
      if (axes == found_.axes.end()) throw Refused{"a stored value has no place among the scores"};
      return indices(axes->second);
    }
    const auto [labels, axes] = pair_operand(id);
    Indices at;
    for (int o = 0; o < static_cast<int>(graph_.shape(id).size()); ++o) {
      const int i = labels->find(o);
      if (i < 0)
        at.push_back(space_.unit(space_.add(kernel_, graph_.shape(id)[static_cast<size_t>(o)], graph_[id].type.axis(o).name)).index);
      else
        at.push_back((*axes)[static_cast<size_t>(i)] < 0 ? Subscript() : unit((*axes)[static_cast<size_t>(i)]));
    }
    return at;
  }

  // --- which reduction is what ---

  void sort_axes() {
    Attention& a = kernel_.attention.emplace();
    a.key = key_axis();
    for (uint16_t r = 0; r < kernel_.reductions.size(); ++r) {
      AttentionStep step;
      step.reduction = r;
      step.over = evaluator_.reduction_axes[r];
      for (const KernelEvaluator::Product& p : evaluator_.products)
        if (p.reduction == r) step.left = p.left, step.right = p.right;
      a.steps.push_back(std::move(step));
    }
    axes_ = axes_of_values(kernel_);
    find_row();
    for (AttentionStep& step : a.steps) find_part(step);
    const std::vector<uint64_t> needs = reductions_of_values(kernel_);
    for (const AttentionStep& step : a.steps)
      if (step.left != kNoValue && (needs[step.right] || (step.part == AttentionPart::scores && needs[step.left])))
        throw Refused{"an operand of its contractions is made of its folds"};
    find_batch();
    const int64_t rows = kernel_.extent(a.row);
    a.block_rows = rows == 1 ? 1 : rows <= kBlockRows / 2 ? kBlockRows / 2 : kBlockRows;
    a.block_keys = rows == 1 ? kOneRowKeys : kBlockKeys;
  }

  AxisId key_axis() const {
    const auto& unit = space_.unit(units_[static_cast<size_t>(found_.key)]);
    if (std::popcount(unit.axes) != 1) throw Refused{"its keys are not one loop"};
    return static_cast<AxisId>(std::countr_zero(unit.axes));
  }

  uint64_t pair_axes() const {
    uint64_t all = 0;
    for (int u : units_) all |= space_.unit(u).axes;
    return all;
  }

  // The largest axis of the scores that no operand of the keys' side depends on. A forward can do without: it is then one row at a time,
  // as when a model reads one token.
  void find_row() {
    Attention& a = *kernel_.attention;
    uint64_t of_rows = pair_axes() & ~bit(a.key);
    for (const AttentionStep& step : a.steps)
      if (step.left != kNoValue && !(bits(step.over) & pair_axes()))
        of_rows &= ~(axes_[step.left] >> a.key & 1 ? axes_[step.left] : axes_[step.right]);
    int64_t most = 0;
    for (AxisId axis = 0; axis < kernel_.axes.size(); ++axis)
      if (of_rows >> axis & 1 && kernel_.extent(axis) >= most) a.row = axis, most = kernel_.extent(axis);
    if (most >= kFewestRows) return;
    if (!found_.backward.members.empty()) throw Refused{"its rows are too few"};
    a.row = static_cast<AxisId>(kernel_.axes.size());
    kernel_.axes.push_back({1, Name()});
  }

  bool has_one_row() const { return kernel_.extent(kernel_.attention->row) == 1; }

  void find_part(AttentionStep& step) {
    const Attention& a = *kernel_.attention;
    const uint64_t pair = bit(a.row) | bit(a.key), over = bits(step.over);
    if (kernel_.reductions[step.reduction].dtype != DType::f32) throw Refused{"its sums are not f32"};
    if (step.left == kNoValue) {
      if (over != bit(a.key)) throw Refused{"a fold over other axes than the keys"};
      step.part = AttentionPart::fold;
      return;
    }
    // No value depends on an only row.
    const auto of_rows = [&](ValueId v) { return has_one_row() ? !(axes_[v] >> a.key & 1) : (axes_[v] >> a.row & 1) != 0; };
    const auto of_pairs = [&](ValueId v) { return has_one_row() ? !(axes_[v] & ~pair_axes()) : (axes_[v] & pair) == pair; };
    if (!(over & pair_axes())) {
      step.part = AttentionPart::scores;
      if (!of_rows(step.left)) std::swap(step.left, step.right);
      if (!of_rows(step.left) || axes_[step.left] >> a.key & 1 || !(axes_[step.right] >> a.key & 1))
        throw Refused{"its scores are no product of rows with keys"};
      return;
    }
    if (!of_pairs(step.left)) std::swap(step.left, step.right);
    if (!of_pairs(step.left) || !(axes_[step.left] >> a.key & 1)) throw Refused{"a contraction reads no scores"};
    step.part = over == bit(a.key) ? AttentionPart::mix : AttentionPart::gather;
    if (step.part == AttentionPart::gather && (!(over >> a.row & 1) || over >> a.key & 1))
      throw Refused{"a contraction over some of the rows"};
    const uint64_t side = axes_[step.right];
    if (side >> (step.part == AttentionPart::mix ? a.row : a.key) & 1) throw Refused{"a contraction of two values per row and key"};
    const uint64_t free = side & ~pair_axes();
    for (AxisId axis = 0; axis < kernel_.axes.size(); ++axis)
      if (free >> axis & 1) step.free.push_back(axis);
    if (step.free.empty()) throw Refused{"a contraction without an axis of its own"};
    if (axes_[step.left] & free) throw Refused{"a contraction with an axis of both operands"};
  }

  void find_batch() {
    Attention& a = *kernel_.attention;
    std::optional<uint64_t> summed;
    for (const AttentionStep& step : a.steps) {
      if (step.part != AttentionPart::gather) continue;
      const uint64_t others = bits(step.over) & ~bit(a.row);
      if (summed && *summed != others) throw Refused{"gradients sum over different axes"};
      summed = others;
    }
    const uint64_t turns = summed.value_or(0);
    for (const AttentionStep& step : a.steps)
      if ((step.part == AttentionPart::scores || step.part == AttentionPart::mix) && axes_[step.right] & turns)
        throw Refused{"gradients sum over an axis that the keys have"};
    for (AxisId axis = 0; axis < kernel_.axes.size(); ++axis) {
      if (!(pair_axes() >> axis & 1) || axis == a.row || axis == a.key) continue;
      (turns >> axis & 1 ? a.turns : a.batch).push_back(axis);
    }
  }

  // A store belongs to the reduction that its value waits for.
  void put(Store store) {
    const uint64_t needs = reductions_of_values(kernel_)[store.value];
    Attention& a = *kernel_.attention;
    AttentionStep* last = nullptr;
    for (AttentionStep& step : a.steps)
      if (needs >> step.reduction & 1 && step.part != AttentionPart::scores) last = &step;
    if (last == nullptr) throw Refused{"a stored value is no result"};
    uint64_t place = 0;
    for (const Affine::Term& t : store.index.affine.terms) place |= bit(t.axis);
    const uint64_t points = bits(a.batch) | bits(a.turns) | bit(a.row) | bit(a.key) | bits(last->free);
    if (has_one_row() && last->part == AttentionPart::fold) throw Refused{"its rows are too few"};
    const uint64_t row = has_one_row() ? bit(a.row) : 0;
    const uint64_t wanted = points & ~row & ~(last->part == AttentionPart::gather ? bit(a.row) | bits(a.turns) : bit(a.key));
    if (!store.index.dynamic.empty() || place != wanted) throw Refused{"a stored value has other axes than its reduction"};
    last->stores.push_back(std::move(store));
  }

  // --- what of softmax it is ---

  void label(const SoftmaxNodes& s) {
    const bool backward = &nodes_ == &found_.backward;
    if (backward && !s.backward) return;
    Attention a = *kernel_.attention;
    if (s.causal_row && unit(*s.causal_row) != Subscript(Affine::of_axis(a.row))) return;
    SoftmaxAttention made{s.scale, s.causal_row.has_value(), buffer_of(s.log_sum), {}};
    if (backward) made.deltas = buffer_of(s.backward->delta);
    if (backward && (!made.log_sums || !made.deltas)) return;
    for (AttentionStep& step : a.steps) {
      const auto p = std::ranges::find(evaluator_.products, step.reduction, &KernelEvaluator::Product::reduction);
      if (p == evaluator_.products.end()) continue;
      step.pair = pair_of(p->node, s);
      if (step.pair == PairValue::other) return;
    }
    a.softmax = made;
    kernel_.attention = std::move(a);
  }

  // What a product makes or reads per row and key.
  PairValue pair_of(NodeId product, const SoftmaxNodes& s) const {
    if (product == found_.scores) return PairValue::scores;
    if (product == s.output) return PairValue::weights;
    if (!s.backward) return PairValue::other;
    if (product == s.backward->weight_gradient) return PairValue::weight_gradient;
    if (product == s.backward->d_values) return PairValue::weights;
    const bool of_scores = product == s.backward->d_queries || product == s.backward->d_keys;
    return of_scores ? PairValue::score_gradient : PairValue::other;
  }

  std::optional<uint16_t> buffer_of(NodeId value) const {
    const auto at = value.valid() ? std::ranges::find(out_.buffers, value) : out_.buffers.end();
    return at == out_.buffers.end() ? std::nullopt : std::optional(static_cast<uint16_t>(at - out_.buffers.begin()));
  }

  const BoundGraph& graph_;
  const FoundAttention& found_;
  const AttentionNodes& nodes_;
  LoopSpace& space_;
  BuiltKernel out_;
  Kernel& kernel_;
  KernelEvaluator evaluator_;
  std::vector<int> units_;  // per axis of the scores
  std::vector<uint64_t> axes_;
};

}  // namespace

AttentionBuild build_attention(const BoundGraph& graph, const FoundAttention& found, const AttentionNodes& nodes,
                               const std::vector<NodeId>& stored, const std::vector<bool>& in_memory, ReadValues read) {
  std::vector<bool> member(graph.graph.size(), false);
  for (NodeId id : nodes.members) member[id.index] = true;
  auto [built, refusal] =
      build_in([&](LoopSpace& space) { return AttentionBuilder(graph, found, nodes, member, in_memory, space).run(stored, read); });
  if (!built) return {std::nullopt, std::move(refusal)};
  return {GraphKernel{std::make_shared<Kernel>(std::move(built->kernel)),
                      std::move(built->buffers),
                      std::move(built->streams),
                      std::move(built->sites),
                      {},
                      {nodes.members, stored}},
          {}};
}

}  // namespace einc
