// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/row_deltas.h"

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/lower/attention_formula.h"
#include "compiler/lower/prune_kernel.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

// Whether values of two kernels are the same formula: of the same elements of the same nodes, axes of one being axes of the other.
class SameFormula {
 public:
  SameFormula(const GraphKernel& a, const GraphKernel& b) : a_(a), b_(b) {
    pair(a.kernel->attention->row, b.kernel->attention->row);
    pair(a.kernel->attention->key, b.kernel->attention->key);
  }

  bool same(ValueId a, ValueId b) {
    const Scalar &x = a_.kernel->values[a], &y = b_.kernel->values[b];
    if (x.kind != y.kind || x.dtype != y.dtype || x.fn != y.fn || x.real != y.real || x.integer != y.integer) return false;
    if (x.kind == ScalarKind::random || x.kind == ScalarKind::checked || x.operands.size() != y.operands.size()) return false;
    if (!x.guards.empty() || !y.guards.empty() || !same(x.index, y.index)) return false;
    if (x.kind == ScalarKind::load && a_.buffers[x.slot] != b_.buffers[y.slot]) return false;
    if (x.kind == ScalarKind::load && !a_.buffers[x.slot].valid()) return false;
    if (x.kind == ScalarKind::reduction && !same_scores(x.slot, y.slot)) return false;
    for (size_t i = 0; i < x.operands.size(); ++i)
      if (!same(x.operands[i], y.operands[i])) return false;
    return true;
  }

  // An index of a's kernel in b's axes.
  std::optional<Affine> translated(const Subscript& index) const {
    if (!index.dynamic.empty()) return std::nullopt;
    Affine made;
    made.constant = index.affine.constant;
    for (const Affine::Term& t : index.affine.terms) {
      const auto found = to_b_.find(t.axis);
      if (found == to_b_.end()) return std::nullopt;
      made = made + Affine::of_axis(found->second, t.coefficient);
    }
    return made;
  }

  bool pair(AxisId a, AxisId b) {
    if (a_.kernel->extent(a) != b_.kernel->extent(b)) return false;
    const auto to_b = to_b_.try_emplace(a, b), to_a = to_a_.try_emplace(b, a);
    return to_b.first->second == b && to_a.first->second == a;
  }

 private:
  bool same(const Subscript& x, const Subscript& y) {
    if (!x.dynamic.empty() || !y.dynamic.empty() || x.affine.constant != y.affine.constant) return false;
    if (x.affine.terms.size() != y.affine.terms.size()) return false;
    return std::ranges::all_of(x.affine.terms, [&](const Affine::Term& t) {
      if (const auto known = to_b_.find(t.axis); known != to_b_.end()) return y.affine.coefficient(known->second) == t.coefficient;
      return std::ranges::any_of(y.affine.terms, [&](const Affine::Term& other) {
        return other.coefficient == t.coefficient && to_a_.count(other.axis) == 0 && pair(t.axis, other.axis);
      });
    });
  }

  bool same_scores(uint16_t a, uint16_t b) {
    const AttentionStep *x = scores(a_, a), *y = scores(b_, b);
    if (!x || !y || x->over.size() != 1 || y->over.size() != 1 || !pair(x->over[0], y->over[0])) return false;
    return same(x->left, y->left) && same(x->right, y->right);
  }
  static const AttentionStep* scores(const GraphKernel& k, uint16_t reduction) {
    for (const AttentionStep& s : k.kernel->attention->steps)
      if (s.part == AttentionPart::scores && s.reduction == reduction) return &s;
    return nullptr;
  }

  const GraphKernel &a_, &b_;
  std::map<AxisId, AxisId> to_b_, to_a_;
};

// D's fold in a kernel: of weights, and of the product of dO with values.
struct DeltaFold {
  size_t fold = 0, product = 0;  // steps
  AttentionFormula::Probability weight;
};

std::optional<DeltaFold> delta_fold(const Kernel& kernel) {
  if (!kernel.attention) return std::nullopt;
  const AttentionFormula formula(kernel);
  const std::vector<AttentionStep>& steps = kernel.attention->steps;
  std::optional<DeltaFold> found;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].part != AttentionPart::fold) continue;
    const Accumulation& r = kernel.reductions[steps[i].reduction];
    const auto product = formula.other_factor(r.value, [&](ValueId x) { return formula.exponential(x).has_value(); });
    const auto made = product ? formula.reduction(*product) : std::nullopt;
    if (found || !made || r.fold != Fold::sum || r.dtype != DType::f32 || steps[i].stores.size() > 1) return std::nullopt;
    const auto& x = kernel.values[r.value].operands;
    found = DeltaFold{i, steps.size(), *formula.exponential(x[0] == *product ? x[1] : x[0])};
    for (size_t s = 0; s < steps.size(); ++s)
      if (steps[s].part == AttentionPart::scores && steps[s].reduction == *made && steps[s].over.size() == 1) found->product = s;
    if (found->product == steps.size() || kernel.values[found->weight.max].kind != ScalarKind::load) return std::nullopt;
  }
  return found;
}

bool is_load(const Kernel& kernel, ValueId id) { return kernel.values[id].kind == ScalarKind::load && kernel.values[id].guards.empty(); }

// Where the forward of the weights stores its result, in the axes of `k`: nothing when it is another's.
struct Result {
  NodeId node;
  DType dtype = DType::f32;
  int64_t count = 0;
  Affine index;
};

std::optional<Result> result_of(const GraphKernel& forward, const GraphKernel& k, const DeltaFold& fold) {
  if (!forward.kernel->attention) return std::nullopt;
  const AttentionFormula formula(*forward.kernel);
  const auto mixes = formula.steps(AttentionPart::mix);
  if (mixes.size() != 1 || mixes[0]->free.size() != 1 || mixes[0]->stores.size() != 1) return std::nullopt;
  const NodeId kept = k.buffers[k.kernel->values[fold.weight.max].slot];
  const auto keeps = [&](const AttentionStep* s) { return s->stores.size() == 1 && forward.buffers[s->stores[0].buffer] == kept; };
  if (!kept.valid() || std::ranges::none_of(formula.steps(AttentionPart::fold), keeps)) return std::nullopt;
  const auto weight = formula.probability(mixes[0]->left);
  const AttentionStep& product = k.kernel->attention->steps[fold.product];
  if (!weight || !is_load(*k.kernel, product.left) || !is_load(*k.kernel, product.right)) return std::nullopt;
  SameFormula formulas(forward, k);
  if (!formulas.same(weight->x, fold.weight.x) || !formulas.pair(mixes[0]->free[0], product.over[0])) return std::nullopt;
  if (!formulas.same(mixes[0]->right, product.right)) return std::nullopt;
  const Store& store = mixes[0]->stores[0];
  const auto index = formulas.translated(store.index);
  if (!index || store.mode != StoreMode::set || formula.reduction(store.value) != mixes[0]->reduction) return std::nullopt;
  const BufferUse& use = forward.kernel->buffers[store.buffer];
  if (!forward.buffers[store.buffer].valid()) return std::nullopt;
  return Result{forward.buffers[store.buffer], use.dtype, use.count, *index};
}

class RowDeltas {
 public:
  explicit RowDeltas(KernelList& list) : list_(list) {}

  void run() {
    std::vector<GraphKernel> kernels;
    std::optional<int64_t> place;  // of the D that the last kernels read
    for (GraphKernel& k : list_.kernels) {
      if (auto made = delta_kernel(kernels, k)) {
        place = made->parts[0].offset;
        kernels.push_back(std::move(*made));
      }
      if (place && !leave_unrounded(k, *place)) place.reset();
      kernels.push_back(std::move(k));
    }
    list_.kernels = std::move(kernels);
  }

 private:
  // The kernel that makes what `k` then reads. `before`: what runs earlier.
  static std::optional<GraphKernel> delta_kernel(const std::vector<GraphKernel>& before, GraphKernel& k) {
    const auto fold = delta_fold(*k.kernel);
    if (!fold) return std::nullopt;
    for (const GraphKernel& forward : before)
      if (const auto result = result_of(forward, k, *fold)) return divide(k, *fold, *result);
    return std::nullopt;
  }

  static std::optional<GraphKernel> divide(GraphKernel& k, const DeltaFold& fold, const Result& result) {
    Kernel rest = *k.kernel;
    AttentionStep& step = rest.attention->steps[fold.fold];
    const auto place = place_of(k, rest, step);
    if (!place) return std::nullopt;
    GraphKernel made = k;
    const Kernel delta = kernel_of(*k.kernel, rest.attention->steps[fold.product], result, *place);
    made.buffers = {k.buffers[k.kernel->values[rest.attention->steps[fold.product].left].slot], result.node, NodeId{}};
    made.parts = {{2, place->offset}};
    made.streams.clear(), made.sites.clear();
    const std::string problem = verify(delta);
    EINC_CHECK(problem.empty(), "{}\n{}", problem, to_string(delta));
    made.kernel = std::make_shared<const Kernel>(delta);
    read(rest, step.reduction, *place);
    rest.attention->steps.erase(rest.attention->steps.begin() + static_cast<std::ptrdiff_t>(fold.fold));
    replace_kernel(k, std::move(rest));
    return made;
  }

  // Where D lies: where another kernel reads it, or in a part of its own.
  struct Place {
    uint16_t buffer;
    int64_t offset, count;
    Affine index;
  };
  static std::optional<Place> place_of(GraphKernel& k, Kernel& kernel, const AttentionStep& fold) {
    if (fold.stores.size() == 1) {
      const Store& s = fold.stores[0];
      const auto part = std::ranges::find_if(k.parts, [&](const Parts& p) { return p.buffer == s.buffer; });
      if (part == k.parts.end() || s.mode != StoreMode::set || !s.index.dynamic.empty()) return std::nullopt;
      return Place{s.buffer, part->offset, kernel.buffers[s.buffer].count, s.index.affine};
    }
    if (!k.parts.empty()) return std::nullopt;
    const Attention& a = *kernel.attention;
    std::vector<AxisId> axes = a.batch;
    axes.insert(axes.end(), a.turns.begin(), a.turns.end());
    axes.push_back(a.row);
    Place place{static_cast<uint16_t>(kernel.buffers.size()), 0, 1, {}};
    for (size_t i = axes.size(); i-- > 0; place.count *= kernel.extent(axes[i]))
      place.index = place.index + Affine::of_axis(axes[i], place.count);
    kernel.buffers.push_back({DType::f32, BufferAccess::read, place.count});
    k.buffers.push_back(NodeId{});
    k.parts.push_back({place.buffer, 0});
    return place;
  }

  // D of each row: the sum of dO times O over a row's elements.
  static Kernel kernel_of(const Kernel& from, const AttentionStep& product, const Result& result, const Place& place) {
    Kernel kernel;
    kernel.axes = from.axes;
    const Attention& a = *from.attention;
    kernel.outer = a.batch;
    kernel.outer.insert(kernel.outer.end(), a.turns.begin(), a.turns.end());
    kernel.outer.push_back(a.row);
    const Scalar& gradient = from.values[product.left];
    kernel.buffers = {{from.buffers[gradient.slot].dtype, BufferAccess::read, from.buffers[gradient.slot].count},
                      {result.dtype, BufferAccess::read, result.count},
                      {DType::f32, BufferAccess::write, place.count}};
    Scalar left, right, both, sum;
    left.kind = right.kind = ScalarKind::load;
    left.dtype = gradient.dtype, left.index = gradient.index;
    right.dtype = result.dtype, right.index = result.index, right.slot = 1;
    both.kind = ScalarKind::map, both.fn = MapFn::mul, both.operands = {0, 1};
    sum.kind = ScalarKind::reduction;
    kernel.values = {left, right, both, sum};
    kernel.reductions = {{Fold::sum, 2, kNoValue, DType::f32}};
    Stage stage;
    stage.axes = product.over, stage.reductions = {0};
    Stage end;
    end.stores = {{2, place.index, 3, StoreMode::set}};
    kernel.stages = {stage, end};
    prune_kernel(kernel);
    return kernel;
  }

  // Products that D at that place is subtracted from. False where the kernel does not read it.
  static bool leave_unrounded(GraphKernel& k, int64_t place) {
    const auto part = std::ranges::find_if(k.parts, [&](const Parts& p) { return p.offset == place; });
    if (part == k.parts.end() || !k.kernel->attention) return false;
    Kernel kernel = *k.kernel;
    const AttentionFormula formula(*k.kernel);
    std::vector<ValueId> now(kernel.values.size());
    for (ValueId id = 0; id < now.size(); ++id) now[id] = id;
    for (const Scalar& v : k.kernel->values) {
      if (v.kind != ScalarKind::map || v.fn != MapFn::sub || v.dtype != DType::f32) continue;
      const Scalar& taken = k.kernel->values[v.operands[1]];
      if (taken.kind != ScalarKind::load || taken.slot != part->buffer || !formula.reduction(v.operands[0])) continue;
      const ValueId product = formula.unrounded(v.operands[0]);
      for (ValueId id = v.operands[0]; id != product; id = k.kernel->values[id].operands[0]) now[id] = product;
      kernel.values[product].dtype = DType::f32;
    }
    rename_values(kernel, now);
    replace_kernel(k, std::move(kernel));
    return true;
  }

  static void read(Kernel& kernel, uint16_t reduction, const Place& place) {
    kernel.buffers[place.buffer].access = BufferAccess::read;
    for (Scalar& v : kernel.values) {
      if (v.kind != ScalarKind::reduction || v.slot != reduction) continue;
      v.kind = ScalarKind::load;
      v.slot = place.buffer;
      v.index = place.index;
    }
  }

  KernelList& list_;
};

}  // namespace

void make_row_deltas(KernelList& list) { RowDeltas(list).run(); }

}  // namespace einc
