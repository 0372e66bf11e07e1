// SPDX-License-Identifier: Apache-2.0
// Gradients of indexed access and of the ops that keep every element in its place.
#include "compiler/autodiff/rules.h"

namespace einc {

// y = table[ids]: g is added at the rows that were read.
std::optional<Partial> gradient_of_gather(const Backward& b, int k) {
  EINC_CHECK(k == 0, "indices have no gradient");
  return b.whole(b.build.scatter_add(b.full_gradient(), b.operand(1), b.attr<GatherAttr>(), b.operand_type(0).axes));
}

// y = zeros with the updates added at ids: each update takes the gradient of its place.
std::optional<Partial> gradient_of_scatter_add(const Backward& b, int k) {
  EINC_CHECK(k == 0, "indices have no gradient");
  return b.whole(b.build.gather(b.full_gradient(), b.operand(1), b.attr<GatherAttr>(), b.operand_type(0).axes));
}

// y = the extreme of what falls on a place: the updates equal to it share g equally.
std::optional<Partial> gradient_of_scatter_extreme(const Backward& b, int k) {
  EINC_CHECK(k == 0, "indices have no gradient");
  const GatherAttr& attr = b.attr<GatherAttr>();
  const NodeId ids = b.operand(1), g = b.full_gradient();
  const std::vector<Axis> updates = b.operand_type(0).axes;
  const auto gathered = [&](NodeId table) { return b.whole(b.build.gather(table, ids, attr, updates)); };
  const Partial hit = b.apply(MapFn::equal, {b.whole(b.operand(0)), gathered(b.id)}, updates);
  const NodeId count = b.build.scatter_add(b.build.cast(hit.value, b.build.type(g).dtype), ids, attr, b.axes());
  const Partial share = b.apply(MapFn::div, {gathered(g), gathered(count)}, updates);
  return b.apply(MapFn::where, {hit, share, Partial{b.constant(Poly(0), g), {}}}, updates);
}

// y = base with the elements at ids replaced (ids name a place once): base takes g with 0 there, the updates g at ids.
std::optional<Partial> gradient_of_scatter_set(const Backward& b, int k) {
  const NodeId g = b.full_gradient(), ids = b.operand(2);
  const std::vector<Axis> updates = b.operand_type(1).axes;
  if (k == 1) return b.whole(b.build.gather(g, ids, b.attr<GatherAttr>(), updates));
  const NodeId zeros = b.full({b.constant(Poly(0), g), {}}, updates);
  return b.whole(b.build.scatter_set(g, zeros, ids, b.attr<GatherAttr>()));
}

// dx = g in x's own dtype.
std::optional<Partial> gradient_of_cast(const Backward& b, int) {
  return Partial{b.build.cast(b.gradient.value, b.operand_type(0).dtype), b.gradient.axes};
}

// The same elements are dropped from g and the others scaled alike: equal streams draw equal masks.
std::optional<Partial> gradient_of_dropout(const Backward& b, int) {
  const DropoutAttr& attr = b.attr<DropoutAttr>();
  return b.whole(b.build.dropout(b.full_gradient(), attr.p, attr.stream));
}

}  // namespace einc
