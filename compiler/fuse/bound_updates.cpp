// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/bound_updates.h"

#include <algorithm>

#include "runtime/base/random.h"

namespace einc {
namespace {

double largest_draw(RandomKind kind) {
  switch (kind) {
    case RandomKind::uniform:
    case RandomKind::keep_mask:
      return 1;
    case RandomKind::normal:
      return 16;  // of 32 bits it is below 6.7
    case RandomKind::gumbel:
      return 32;  // below 23
    case RandomKind::bits:
      return static_cast<double>(kRandomBitsEnd);
  }
  return 1;
}

BoundFn bound_fn(MapFn fn) {
  switch (fn) {
#define X(name, arity, transcendental, spelling, form) \
  case MapFn::name:                                    \
    return BoundFn::name;
    EINC_MAP_FNS(X)
#undef X
  }
  return BoundFn::unknown;
}

}  // namespace

uint32_t BoundUpdates::add(BoundOp op, bool fixed) {
  ops_.push_back(op);
  fixed_.push_back(fixed);
  return static_cast<uint32_t>(ops_.size() - 1);
}

BoundOp BoundUpdates::leaf(NodeId id) {
  const Node& node = graph_[id];
  BoundOp op;
  op.dtype = node.type.dtype;
  op.buffer = id.index;
  if (node.type.rank() == 0) {
    op.fn = BoundFn::number;
    if (!is_source(node.op)) numbers_.push_back(id);
  } else if (node.op == Op::param || node.op == Op::state) {
    op.fn = BoundFn::source;
  } else if (is_floating(node.type.dtype)) {
    op.fn = BoundFn::magnitude;
    op.buffer = magnitude_(id).index;
  } else {
    op.fn = BoundFn::between;
    op.value = info(node.type.dtype).largest;
  }
  return op;
}

BoundOp BoundUpdates::made_of_nothing(const Node& node) const {
  BoundOp op;
  op.dtype = node.type.dtype;
  op.fn = BoundFn::between;
  if (const auto* constant = std::get_if<ConstantAttr>(&node.attr))
    op.fn = BoundFn::constant, op.value = graph_.value(constant->value);
  else if (const auto* random = std::get_if<RandomAttr>(&node.attr))
    op.value = largest_draw(random->kind);
  else
    op.value = static_cast<double>(graph_.value(node.type.axis(0).size));
  return op;
}

uint32_t BoundUpdates::bound_of(NodeId value) {
  if (const auto known = op_of_.find(value.index); known != op_of_.end()) return known->second;
  const Node& node = graph_[value];
  uint32_t result = 0;
  if (expressions_.is_leaf(value)) {
    result = add(leaf(value), false);
  } else if (node.operands.empty()) {
    result = add(made_of_nothing(node), true);
  } else {
    BoundOp op;
    op.dtype = node.type.dtype;
    op.fn = node.op == Op::map ? bound_fn(node.as<MapAttr>().fn) : BoundFn::cast;
    bool fixed = true;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      op.operands[k] = bound_of(node.operands[k]);
      fixed = fixed && fixed_[op.operands[k]];
    }
    result = add(op, fixed);
  }
  op_of_.emplace(value.index, result);
  return result;
}

std::vector<bool> BoundUpdates::known() const {
  std::vector<Interval> leaves(ops_.size());
  for (size_t i = 0; i < ops_.size(); ++i) {
    if (ops_[i].fn == BoundFn::number) leaves[i] = Interval::point(1);
    if (ops_[i].fn == BoundFn::magnitude) leaves[i] = Interval::within(1);
    if (ops_[i].fn == BoundFn::source) leaves[i] = {0, 1};
  }
  std::vector<bool> known;
  for (const Interval& bound : evaluate_bounds(ops_, leaves)) known.push_back(bound.is_bounded());
  return known;
}

}  // namespace einc
