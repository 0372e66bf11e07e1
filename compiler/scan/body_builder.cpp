// SPDX-License-Identifier: Apache-2.0
// A body is a graph of its own: inputs stand for operands, states for carries, updates for what an iteration hands on or collects. While it
// is built, inputs have no names, since operands are numbered whole values first, then slices, then initial values, and how many there are
// of each is known only at the end. finish() names them and appends the scan.
#include "compiler/scan/body_builder.h"

#include "compiler/ir/print.h"
#include "compiler/ir/scan.h"

namespace einc {
namespace {

// The dims and loops that the graph outside has so far: a body's sizes are in them.
std::shared_ptr<Graph> empty_body(const Graph& outside) {
  auto body = std::make_shared<Graph>();
  body->name = outside.name;
  body->dims = outside.dims;
  body->loops = outside.loops;
  body->loop_contexts = outside.loop_contexts;
  body->policy = outside.policy;
  return body;
}

}  // namespace

// Nodes are never erased: ids are indices. A constant without readers is dropped by the next pass that copies the graph.
void clear_node(Node& node) {
  node.op = Op::constant;
  node.type = Type{DType::real, {}};
  node.operands.clear();
  node.attr = ConstantAttr{Poly(0)};
  node.origin.pinned = false;
}

namespace {

StateAttr state_named(size_t index) { return StateAttr{scan_name(index), Init{}, StateRole::user}; }

}  // namespace

BodyBuilder::BodyBuilder(Builder& outside, Axis axis, Direction direction, int64_t save_every)
    : outside_(outside),
      graph_(empty_body(outside.graph())),
      body_(*graph_),
      axis_(std::move(axis)),
      direction_(direction),
      save_every_(save_every),
      origin_(outside.origin) {
  body_.origin = origin_;
}

NodeId BodyBuilder::carry(NodeId initial) {
  body_.origin = outside_.graph()[initial].origin;
  body_.origin.pinned = false;
  const NodeId state = body_.state(state_named(carries_.size()), outside_.type(initial));
  body_.origin = origin_;
  carries_.push_back({state, initial, NodeId{}});
  return state;
}

NodeId BodyBuilder::input(std::vector<Input>& list, NodeId outer, Type type, const Origin& origin) {
  const Origin saved = body_.origin;
  body_.origin = origin;
  body_.origin.pinned = false;
  NodeId named = outer;
  // Messages and listings call an input as the value outside is called, whichever way it is turned.
  while (outside_.graph()[named].op == Op::permute) named = outside_.graph()[named].operands[0];
  body_.origin.label = Name(describe_node(outside_.graph(), named));
  const NodeId node = body_.input(Name(), std::move(type));
  body_.origin = saved;
  list.push_back({node, outer});
  return node;
}

// Constants and arithmetic of them, which cost nothing and simplify what reads them; `training` will be one.
NodeId BodyBuilder::repeat(NodeId x) {
  Node node = outside_.graph()[x];
  // Transcendental functions stay outside, where they are made once and not in every iteration.
  const bool arithmetic = node.op == Op::map && !is_transcendental(node.as<MapAttr>().fn);
  const bool simple = node.op == Op::constant || node.op == Op::training || node.op == Op::iota || arithmetic || node.op == Op::cast ||
                      (kind_of(node.op) == OpKind::view && node.op != Op::stop_gradient);
  if (!simple) return {};
  for (NodeId& operand : node.operands) {
    operand = of_outside_.contains(operand.index) ? of_outside_.at(operand.index) : repeat(operand);
    if (!operand.valid()) return {};
  }
  return body_.append(std::move(node));
}

NodeId BodyBuilder::outside(NodeId x) {
  const auto known = of_outside_.find(x.index);
  if (known != of_outside_.end()) return known->second;
  const Node& node = outside_.graph()[x];
  NodeId inner = repeat(x);
  if (!inner.valid()) inner = input(wholes_, x, node.type, node.origin);
  of_outside_.emplace(x.index, inner);
  return inner;
}

NodeId BodyBuilder::slice(NodeId x, int axis, const Origin& origin) {
  if (axis == 0) return slice(x, origin);
  AxisList order;
  order.push_back(axis);
  for (int i = 0; i < outside_.type(x).rank(); ++i)
    if (i != axis) order.push_back(i);
  return slice(outside_.permute(x, order), origin);
}

NodeId BodyBuilder::slice(NodeId stacked, const Origin& origin) {
  const auto known = of_stacked_.find(stacked.index);
  if (known != of_stacked_.end()) return known->second;
  Type type = outside_.type(stacked);
  type.axes.erase(type.axes.begin());
  const NodeId node = input(slices_, stacked, std::move(type), origin);
  of_stacked_.emplace(stacked.index, node);
  return node;
}

NodeId BodyBuilder::index() {
  if (!index_.valid()) index_ = slice(outside_.iota(axis_), origin_);
  return index_;
}

// In place, so that the readers of the node need no change.
void BodyBuilder::replace_by_slice(NodeId node, NodeId stacked) {
  Node& replaced = graph_->nodes[node.index];
  replaced.op = Op::input;
  replaced.operands.clear();
  replaced.attr = InputAttr{};
  replaced.origin.pinned = false;
  slices_.push_back({node, stacked});
}

NodeId BodyBuilder::stacked(NodeId input) const {
  for (const Input& slice : slices_)
    if (slice.node == input) return slice.outer;
  return {};
}

NodeId BodyBuilder::whole(NodeId input) const {
  for (const Input& whole : wholes_)
    if (whole.node == input) return whole.outer;
  return {};
}

std::vector<NodeId> BodyBuilder::roots() const {
  std::vector<NodeId> roots = collected_;
  for (const Carry& c : carries_) roots.push_back(c.next);
  return roots;
}

// Nodes that no root needs become constants, and inputs that only they read no operands: the others keep their numbers.
void BodyBuilder::drop_unread() {
  std::vector<bool> read(graph_->size(), false);
  for (const NodeId id : roots()) read[id.index] = true;
  for (const NodeId id : kept_) read[id.index] = true;
  for (const Carry& c : carries_) read[c.state.index] = true;
  for (uint32_t i = graph_->size(); i-- > 0;)
    if (read[i])
      for (NodeId x : graph_->nodes[i].operands) read[x.index] = true;
  for (uint32_t i = 0; i < graph_->size(); ++i)
    if (!read[i]) clear_node(graph_->nodes[i]);
  for (std::vector<Input>* list : {&wholes_, &slices_}) std::erase_if(*list, [&](const Input& in) { return !read[in.node.index]; });
}

std::vector<NodeId> BodyBuilder::finish() {
  drop_unread();
  std::vector<NodeId> operands;
  for (const std::vector<Input>* list : {&wholes_, &slices_})
    for (const Input& in : *list) {
      std::get<InputAttr>(graph_->nodes[in.node.index].attr).name = scan_name(operands.size());
      operands.push_back(in.outer);
    }
  for (const Carry& c : carries_) {
    operands.push_back(c.initial);
    graph_->updates.push_back({c.state, c.next});
  }
  for (const NodeId value : collected_)
    graph_->updates.push_back({body_.state(state_named(graph_->updates.size()), body_.type(value)), value});
  outside_.origin = origin_;
  const NodeId scan = outside_.scan(
      operands, ScanAttr{graph_, axis_.size, static_cast<int>(slices_.size()), static_cast<int>(carries_.size()), direction_, save_every_});
  std::vector<NodeId> results;
  for (size_t r = 0; r < graph_->updates.size(); ++r) {
    const NodeId value = r < carries_.size() ? carries_[r].next : collected_[r - carries_.size()];
    outside_.origin = graph_->nodes[value.index].origin;
    outside_.origin.pinned = false;
    results.push_back(outside_.scan_result(scan, static_cast<int>(r), axis_.name));
  }
  outside_.origin = origin_;
  return results;
}

}  // namespace einc
