#include "compiler/cost/op_cost.h"

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
    case Op::scan:
    case Op::arg_reduce:
    case Op::top_k_index:
      return {FlopClass::reduction, false, sizes.count(node.operands[0])};
    case Op::fold:
    case Op::scatter_add:
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
    case Op::softmax:
    case Op::logsumexp:
    case Op::dropout:
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
    case Op::scan:
    case Op::arg_reduce:
    case Op::top_k_index:
    case Op::contract:
    case Op::fold:
    case Op::pad:
    case Op::concat:
    case Op::gather:
    case Op::scatter_add:
    case Op::scatter_set:
    case Op::cast:
    case Op::softmax:
    case Op::logsumexp:
    case Op::dropout:
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
    case Op::scan:
    case Op::arg_reduce:
    case Op::top_k_index:
    case Op::contract:
    case Op::fold:
    case Op::pad:
    case Op::concat:
    case Op::scatter_add:
    case Op::scatter_set:
    case Op::cast:
    case Op::softmax:
    case Op::logsumexp:
    case Op::dropout:
      return {operands_read(node), sizes_.bytes(id)};
  }
  return {};
}

}  // namespace einc
