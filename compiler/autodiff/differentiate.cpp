#include "compiler/autodiff/differentiate.h"

#include "compiler/autodiff/rules.h"

namespace einc {
namespace {

std::optional<Partial> gradient_of_operand(const Backward& b, int k) {
  switch (b.node.op) {
    case Op::map:
      return gradient_of_map(b, k);
    case Op::reduce:
      return gradient_of_reduce(b, k);
    case Op::scan:
      return gradient_of_scan(b, k);
    case Op::contract:
      return gradient_of_contract(b, k);
    case Op::permute:
      return gradient_of_permute(b, k);
    case Op::broadcast:
      return gradient_of_broadcast(b, k);
    case Op::split:
      return gradient_of_split(b, k);
    case Op::merge:
      return gradient_of_merge(b, k);
    case Op::slice:
      return gradient_of_slice(b, k);
    case Op::diagonal:
      return gradient_of_diagonal(b, k);
    case Op::window:
      return gradient_of_window(b, k);
    case Op::fold:
      return gradient_of_fold(b, k);
    case Op::pad:
      return gradient_of_pad(b, k);
    case Op::concat:
      return gradient_of_concat(b, k);
    case Op::gather:
      return gradient_of_gather(b, k);
    case Op::scatter_add:
      return gradient_of_scatter_add(b, k);
    case Op::scatter_set:
      return gradient_of_scatter_set(b, k);
    case Op::cast:
      return gradient_of_cast(b, k);
    case Op::softmax:
      return gradient_of_softmax(b, k);
    case Op::logsumexp:
      return gradient_of_logsumexp(b, k);
    case Op::dropout:
      return gradient_of_dropout(b, k);
    case Op::input:
    case Op::param:
    case Op::state:
    case Op::constant:
    case Op::iota:
    case Op::random:
    case Op::arg_reduce:
    case Op::top_k_index:
    case Op::stop_gradient:
      return std::nullopt;
  }
  return std::nullopt;
}

// For every node up to y: true when its value depends on a wanted one through floating values and no stop_gradient.
std::vector<bool> nodes_that_depend(const Graph& graph, NodeId y, std::span<const NodeId> wrt) {
  std::vector<bool> depends(y.index + 1, false);
  for (NodeId w : wrt)
    if (w.index <= y.index) depends[w.index] = true;
  for (uint32_t i = 0; i <= y.index; ++i) {
    const Node& node = graph.nodes[i];
    if (depends[i] || !is_floating(node.type.dtype) || node.op == Op::stop_gradient) continue;
    for (NodeId operand : node.operands) depends[i] = depends[i] || depends[operand.index];
  }
  return depends;
}

Origin backward_origin(const Graph& graph, NodeId op, NodeId value) {
  Origin origin = graph[op].origin;
  const Name label = graph[value].origin.label;
  const Name base = label.empty() ? origin.label : label;
  origin.label = base.empty() ? base : Name("d " + base.str());
  origin.phase = Phase::backward;
  origin.pinned = false;
  return origin;
}

class Sweep {
 public:
  Sweep(Builder& build, NodeId y, std::span<const NodeId> wrt)
      : build_(build), depends_(nodes_that_depend(build.graph(), y, wrt)), pending_(y.index + 1), wanted_(y.index + 1, false) {
    for (NodeId w : wrt)
      if (w.index <= y.index) wanted_[w.index] = true;
    if (!depends_[y.index]) return;
    build_.origin = backward_origin(build_.graph(), y, y);
    pending_[y.index].push_back({build_.constant(Poly(1), build_.type(y).dtype), {}});
    for (uint32_t i = y.index + 1; i-- > 0;) visit(NodeId{i});
  }

  NodeId result(NodeId w) const { return w.index < pending_.size() && !pending_[w.index].empty() ? pending_[w.index][0].value : NodeId{}; }

 private:
  void visit(NodeId id) {
    std::vector<Partial>& arrived = pending_[id.index];
    if (arrived.empty()) return;
    build_.origin = backward_origin(build_.graph(), id, id);
    const std::vector<Axis> frame = build_.type(id).axes;
    const Partial total = accumulate(build_, std::move(arrived), frame);
    arrived.clear();
    propagate(Backward(build_, id, total));
    if (!wanted_[id.index]) return;
    build_.origin = backward_origin(build_.graph(), id, id);
    arrived.push_back({build_.rename(Backward(build_, id, total).full(total, frame), frame), {}});
  }

  void propagate(const Backward& b) {
    for (size_t k = 0; k < b.node.operands.size(); ++k) {
      const NodeId operand = b.node.operands[k];
      if (!depends_[operand.index]) continue;
      build_.origin = backward_origin(build_.graph(), b.id, operand);
      std::optional<Partial> part = gradient_of_operand(b, static_cast<int>(k));
      if (!part) continue;
      const DType dtype = build_.type(operand).dtype;
      if (build_.type(part->value).dtype != dtype) part->value = build_.cast(part->value, dtype);
      pending_[operand.index].push_back(*part);
    }
  }

  Builder& build_;
  std::vector<bool> depends_;
  std::vector<std::vector<Partial>> pending_;  // what reached each node; a visited wanted node keeps its gradient here
  std::vector<bool> wanted_;
};

}  // namespace

std::vector<NodeId> differentiate(Builder& build, NodeId y, std::span<const NodeId> wrt) {
  EINC_CHECK(build.type(y).rank() == 0 && is_floating(build.type(y).dtype), "only a floating scalar can be differentiated");
  const Origin origin = build.origin;
  const Sweep sweep(build, y, wrt);
  build.origin = origin;
  std::vector<NodeId> gradients;
  for (NodeId w : wrt) gradients.push_back(sweep.result(w));
  return gradients;
}

}  // namespace einc
