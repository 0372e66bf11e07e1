// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/flatten.h"

#include <algorithm>

namespace einc {
namespace {

class Flattener {
 public:
  Flattener(Kernel& kernel, const std::vector<AxisId>& axes) : kernel_(kernel), axes_(axes), all_(static_cast<AxisId>(kernel.axes.size())) {
    LoopAxis joined;
    for (AxisId a : axes) joined.extent *= kernel.extent(a);
    kernel.axes.push_back(joined);
  }

  AxisId run() {
    make_parts();
    insert_first(kernel_, made_);
    for (Scalar& v : kernel_.values) {
      rewrite(v.index);
      for (Range& g : v.guards) rewrite(g.index);
    }
    for (Stage& stage : kernel_.stages)
      for (Store& store : stage.stores) rewrite(store.index);
    if (kernel_.attention)
      for (AttentionStep& step : kernel_.attention->steps)
        for (Store& store : step.stores) rewrite(store.index);
    return all_;
  }

 private:
  ValueId make(ScalarKind kind, ValueId operand, int64_t by) {
    Scalar v;
    v.kind = kind;
    v.dtype = DType::i64;
    v.operands.push_back(operand);
    v.integer = by;
    made_.push_back(std::move(v));
    return static_cast<ValueId>(made_.size() - 1);
  }

  // The value of each flattened axis: what is left of the whole after the inner ones are divided off.
  void make_parts() {
    parts_.assign(axes_.size(), kNoValue);
    if (axes_.size() < 2) return;
    Scalar whole;
    whole.kind = ScalarKind::index;
    whole.dtype = DType::i64;
    whole.index = Subscript(Affine::of_axis(all_));
    made_.push_back(whole);
    ValueId rest = 0;
    for (size_t k = axes_.size(); k-- > 1;) {
      parts_[k] = make(ScalarKind::remainder, rest, kernel_.extent(axes_[k]));
      rest = make(ScalarKind::quotient, rest, kernel_.extent(axes_[k]));
    }
    parts_[0] = rest;
  }

  void rewrite(Subscript& index) const {
    std::vector<int64_t> step;
    for (AxisId a : axes_) step.push_back(index.affine.coefficient(a));
    if (std::all_of(step.begin(), step.end(), [](int64_t s) { return s == 0; })) return;
    auto& terms = index.affine.terms;
    terms.erase(std::remove_if(terms.begin(), terms.end(),
                               [&](const Affine::Term& t) { return std::find(axes_.begin(), axes_.end(), t.axis) != axes_.end(); }),
                terms.end());
    bool even = true;
    for (size_t k = axes_.size(); k-- > 1;) even = even && step[k - 1] == step[k] * kernel_.extent(axes_[k]);
    if (even) {
      terms.push_back({all_, step.back()});
      return;
    }
    for (size_t k = 0; k < axes_.size(); ++k)
      if (step[k] != 0) index.dynamic.push_back({parts_[k], step[k]});
  }

  Kernel& kernel_;
  const std::vector<AxisId>& axes_;
  AxisId all_;
  std::vector<ValueId> parts_;
  std::vector<Scalar> made_;
};

}  // namespace

AxisId flatten(Kernel& kernel, const std::vector<AxisId>& axes) { return Flattener(kernel, axes).run(); }

FlatContraction flatten_contraction(Kernel& kernel) {
  Contraction& c = *kernel.contraction;
  FlatContraction flat;
  flat.row = flatten(kernel, c.rows);
  flat.column = flatten(kernel, c.columns);
  flat.depth = flatten(kernel, c.depth);
  c.rows = {flat.row}, c.columns = {flat.column}, c.depth = {flat.depth};
  kernel.outer = c.batch;
  kernel.outer.insert(kernel.outer.end(), {flat.row, flat.column});
  kernel.stages[0].axes = c.depth;
  for (const AxisId a : c.batch) flat.batches *= kernel.extent(a);
  return flat;
}

}  // namespace einc
