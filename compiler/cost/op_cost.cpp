// SPDX-License-Identifier: Apache-2.0
#include "compiler/cost/op_cost.h"

#include "compiler/cost/totals.h"

namespace einc {
namespace {

// 2 x the product of all labels' sizes.
Poly contraction_flops(const Graph& graph, const Node& node, const Poly& results) {
  const auto& attr = node.as<ContractAttr>();
  const Type& left = graph.type(node.operands[0]);
  Poly flops(2);
  for (int i = 0; i < attr.left.size(); ++i)
    if (attr.left[i] >= node.type.rank()) flops *= left.axis(i).size;
  return flops * results;
}

// What an einsum with a window on its right adds up at one place is a sum of its contraction, counted there; one axis alone only moves.
bool adds_nothing(const Graph& graph, const Node& node) {
  if (node.origin.phase != Phase::forward) return false;
  if (node.as<WindowAttr>().strides.size() == 1) return true;
  NodeId at = node.operands[0];
  while (graph[at].op == Op::permute || graph[at].op == Op::cast || graph[at].op == Op::fold) at = graph[at].operands[0];
  return graph[at].op == Op::contract;
}

// Of all iterations.
FlopCost scan_flops(const Node& node) {
  const ScanAttr& attr = node.as<ScanAttr>();
  const FlopTotals totals = count_flops(*attr.body, constant_nodes(*attr.body));
  FlopCost cost;
  cost.by_class.resize(kFlopClasses + 1);
  for (size_t phase = 0; phase < totals.by_class.size(); ++phase) {
    for (size_t k = 0; k < kFlopClasses; ++k) cost.by_class[k] += totals.by_class[phase][k] * attr.length;
    cost.by_class[kFlopClasses] += totals.transcendental[phase] * attr.length;
  }
  for (size_t k = 0; k < kFlopClasses; ++k) cost.flops += cost.by_class[k];
  return cost;
}

bool is_scalar_constant(const Node& node) { return node.op == Op::constant; }

}  // namespace

FlopCost flop_cost(const Graph& graph, const Sizes& sizes, NodeId id) {
  const Node& node = graph[id];
  switch (node.op) {
    case Op::contract:
      return {FlopClass::contraction, false, contraction_flops(graph, node, sizes.count(id))};
    case Op::map:
      return {FlopClass::elementwise, is_transcendental(node.as<MapAttr>().fn), sizes.count(id)};
    case Op::reduce:
    case Op::cumulate:
    case Op::arg_reduce:
    case Op::top_k_index:
      return {FlopClass::reduction, false, sizes.count(node.operands[0])};
    case Op::fold:
      if (adds_nothing(graph, node)) return {FlopClass::other, false, Poly(0)};
      [[fallthrough]];
    case Op::scatter_add:
    case Op::scatter_max:
    case Op::scatter_min:
      return {FlopClass::other, false, sizes.count(node.operands[0])};
    case Op::input:
    case Op::param:
    case Op::state:
    case Op::constant:
    case Op::iota:
    case Op::random:
    case Op::permute:
    case Op::broadcast:
    case Op::split:
    case Op::merge:
    case Op::slice:
    case Op::diagonal:
    case Op::window:
    case Op::stop_gradient:
    case Op::pad:
    case Op::concat:
    case Op::gather:
    case Op::scatter_set:
    case Op::cast:
      return {FlopClass::other, false, Poly(0)};
    case Op::scan:
      return scan_flops(node);
    case Op::scan_result:
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::all_gather:
    case Op::all_to_all:
    case Op::shift:
      return {FlopClass::other, false, Poly(0)};
    case Op::softmax:
    case Op::logsumexp:
    case Op::dropout:
    case Op::training:
      break;
  }
  EINC_CHECK(false, "{} is counted after it is expanded", to_string(node.op));
}

std::vector<FlopCost> flop_costs(const Graph& graph, const Sizes& sizes) {
  std::vector<FlopCost> costs;
  costs.reserve(graph.size());
  for (uint32_t i = 0; i < graph.size(); ++i) costs.push_back(flop_cost(graph, sizes, NodeId{i}));
  return costs;
}

// The node whose elements are read when `id` is: itself, or what a view that reads all of it or repeats it shows.
NodeId ByteCounter::elements_read(NodeId id) const {
  const Node& node = graph_[id];
  if (kind_of(node.op) != OpKind::view || copies_[id.index]) return id;
  switch (node.op) {
    case Op::slice:
    case Op::diagonal:
      return id;
    case Op::permute:
    case Op::broadcast:
    case Op::split:
    case Op::merge:
    case Op::window:
    case Op::stop_gradient:
      return elements_read(node.operands[0]);
    case Op::input:
    case Op::param:
    case Op::state:
    case Op::constant:
    case Op::iota:
    case Op::random:
    case Op::map:
    case Op::reduce:
    case Op::cumulate:
    case Op::arg_reduce:
    case Op::top_k_index:
    case Op::contract:
    case Op::fold:
    case Op::pad:
    case Op::concat:
    case Op::gather:
    case Op::scatter_add:
    case Op::scatter_max:
    case Op::scatter_min:
    case Op::scatter_set:
    case Op::cast:
    case Op::scan:
    case Op::scan_result:
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::all_gather:
    case Op::all_to_all:
    case Op::shift:
    case Op::softmax:
    case Op::logsumexp:
    case Op::dropout:
    case Op::training:
      break;
  }
  return id;
}

Poly ByteCounter::bytes_read(NodeId id) const { return sizes_.bytes(elements_read(id)); }

Poly ByteCounter::operands_read(const Node& node) const {
  Poly bytes;
  for (size_t k = 0; k < node.operands.size(); ++k) {
    const NodeId x = node.operands[k];
    if (is_scalar_constant(graph_[x])) continue;
    bool seen = false;
    for (size_t j = 0; j < k; ++j) seen = seen || node.operands[j] == x;
    if (!seen) bytes += bytes_read(x);
  }
  return bytes;
}

ByteCost ByteCounter::operator()(NodeId id) const {
  const Node& node = graph_[id];
  switch (node.op) {
    case Op::input:
    case Op::param:
    case Op::state:
    case Op::constant:
      return {};
    case Op::iota:
    case Op::random:
      return {Poly(0), sizes_.bytes(id)};
    case Op::scan:
      return {operands_read(node), Poly(0)};
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::all_gather:
    case Op::all_to_all:
    case Op::shift:
    case Op::scan_result:  // made by the scan's iterations
      return {Poly(0), sizes_.bytes(id)};
    case Op::permute:
    case Op::broadcast:
    case Op::split:
    case Op::merge:
    case Op::slice:
    case Op::diagonal:
    case Op::window:
    case Op::stop_gradient:
      if (!copies_[id.index]) return {};
      return {operands_read(node), sizes_.bytes(id)};
    case Op::gather:  // the rows taken, not the table
      return {sizes_.bytes(id) + bytes_read(node.operands[1]), sizes_.bytes(id)};
    case Op::map:
    case Op::reduce:
    case Op::cumulate:
    case Op::arg_reduce:
    case Op::top_k_index:
    case Op::contract:
    case Op::fold:
    case Op::pad:
    case Op::concat:
    case Op::scatter_add:
    case Op::scatter_max:
    case Op::scatter_min:
    case Op::scatter_set:
    case Op::cast:
    case Op::softmax:
    case Op::logsumexp:
    case Op::dropout:
    case Op::training:
      return {operands_read(node), sizes_.bytes(id)};
  }
  return {};
}

}  // namespace einc
