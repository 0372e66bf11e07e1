// SPDX-License-Identifier: Apache-2.0
#include "compiler/autodiff/differentiate.h"

#include <algorithm>

#include "compiler/autodiff/rules.h"
#include "compiler/autodiff/scan_gradient.h"
#include "compiler/autodiff/sweep.h"

namespace einc {
namespace {

std::optional<Partial> gradient_of_operand(const Backward& b, int k) {
  switch (b.node.op) {
    case Op::map:
      return gradient_of_map(b, k);
    case Op::reduce:
      return gradient_of_reduce(b, k);
    case Op::cumulate:
      return gradient_of_cumulate(b, k);
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
    case Op::scatter_max:
    case Op::scatter_min:
      return gradient_of_scatter_extreme(b, k);
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
    case Op::training:
    case Op::scan:  // operands together: see Sweep
    case Op::scan_result:
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::all_gather:
    case Op::all_to_all:
    case Op::shift:
      return std::nullopt;
  }
  return std::nullopt;
}

// For every node: true when its value depends on a wanted one through floating values and no stop_gradient.
std::vector<bool> nodes_that_depend(const Graph& graph, std::span<const NodeId> wrt, const CustomGradients* customs) {
  std::vector<bool> depends(graph.size(), false);
  for (NodeId w : wrt) depends[w.index] = true;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (const CustomGradient* custom = customs ? customs->of(NodeId{i}) : nullptr) {
      if (is_floating(node.type.dtype))
        for (NodeId input : custom->inputs) depends[i] = depends[i] || depends[input.index];
      continue;
    }
    const bool passes = is_floating(node.type.dtype) || node.op == Op::scan;
    if (depends[i] || !passes || node.op == Op::stop_gradient) continue;
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

}  // namespace

Sweep::Sweep(Builder& build, std::span<const Seed> seeds, std::span<const NodeId> wrt, const SweepOptions& options)
    : build_(build),
      options_(options),
      depends_(nodes_that_depend(build.graph(), wrt, options.custom)),
      pending_(build.graph().size()),
      wanted_(build.graph().size(), false),
      apart_(build.graph().size(), false) {
  for (NodeId w : wrt) wanted_[w.index] = true;
  for (NodeId w : options.apart) apart_[w.index] = true;
  uint32_t end = 0;
  for (const Seed& seed : seeds) {
    if (!depends_[seed.value.index]) continue;
    pending_[seed.value.index].push_back({seed.gradient, AxisList::range(build_.type(seed.gradient).rank())});
    end = std::max(end, seed.value.index + 1);
  }
  for (uint32_t i = end; i-- > 0;) visit(NodeId{i});
}

NodeId Sweep::result(NodeId w) const {
  return w.index < pending_.size() && !pending_[w.index].empty() ? pending_[w.index][0].value : NodeId{};
}

void Sweep::visit(NodeId id) {
  if (apart_[id.index]) return;
  if (build_.graph()[id].op == Op::scan) return visit_scan(id);
  std::vector<Partial>& arrived = pending_[id.index];
  if (arrived.empty() || through_custom(id)) return;
  build_.origin = backward_origin(build_.graph(), id, id);
  const std::vector<Axis> frame = build_.type(id).axes;
  const Partial total = accumulate(build_, std::move(arrived), frame);
  arrived.clear();
  if (build_.graph()[id].op == Op::scan_result)
    hand_to_scan(id, Backward(build_, id, total).full(total, frame));
  else
    propagate(Backward(build_, id, total));
  if (!wanted_[id.index]) return;
  build_.origin = backward_origin(build_.graph(), id, id);
  arrived.push_back({build_.rename(Backward(build_, id, total).full(total, frame), frame), {}});
}

// A scan's gradient needs those of all its results, so each waits here for visit_scan, which comes later: the scan stands before them.
// Who wants the gradient of a result itself changes nothing of that.
void Sweep::hand_to_scan(NodeId result, NodeId gradient) {
  const Node& node = build_.graph()[result];
  if (!depends_[node.operands[0].index]) return;
  std::vector<NodeId>& all = of_results_[node.operands[0].index];
  const auto index = static_cast<size_t>(node.as<ScanResultAttr>().index);
  if (all.size() <= index) all.resize(index + 1);
  // A result that stands twice in the graph.
  all[index] = all[index].valid() ? build_.map(MapFn::add, {all[index], gradient}) : gradient;
}

void Sweep::visit_scan(NodeId id) {
  const auto found = of_results_.find(id.index);
  if (found == of_results_.end()) return;
  const auto operands = build_.graph()[id].operands;
  std::vector<bool> wanted;
  for (NodeId x : operands) wanted.push_back(depends_[x.index] && is_floating(build_.type(x).dtype));
  build_.origin = backward_origin(build_.graph(), id, id);
  const std::vector<NodeId> gradients = gradient_of_scan(build_, id, found->second, wanted, options_.custom, options_.met_custom);
  for (size_t k = 0; k < operands.size(); ++k)
    if (gradients[k].valid()) add(operands[k], {gradients[k], AxisList::range(build_.type(gradients[k]).rank())});
}

// The results of one call come together: the last of them that a gradient reaches takes those of all.
bool Sweep::through_custom(NodeId id) {
  const CustomGradient* found = options_.custom ? options_.custom->of(id) : nullptr;
  if (found == nullptr) return false;
  if (std::ranges::find(finished_, found->results.front()) != finished_.end()) return true;
  finished_.push_back(found->results.front());
  if (options_.met_custom) *options_.met_custom = true;
  const CustomGradient custom = *found;  // copying a block adds others
  std::vector<NodeId> cotangents;
  for (const NodeId result : custom.results) cotangents.push_back(cotangent_of(result));
  const std::vector<NodeId> gradients = options_.custom->copy_block(build_, custom, cotangents);
  for (size_t i = 0; i < custom.inputs.size(); ++i)
    if (depends_[custom.inputs[i].index])
      pending_[custom.inputs[i].index].push_back({gradients[i], AxisList::range(build_.type(gradients[i]).rank())});
  return true;
}

// With all axes; zeros where none arrived. It stays there for who wants it.
NodeId Sweep::cotangent_of(NodeId result) {
  build_.origin = backward_origin(build_.graph(), result, result);
  const std::vector<Axis> frame = build_.type(result).axes;
  std::vector<Partial>& arrived = pending_[result.index];
  const bool none = arrived.empty();
  const Partial total =
      none ? Partial{build_.constant(Poly(0), build_.type(result).dtype), {}} : accumulate(build_, std::move(arrived), frame);
  const NodeId whole = build_.rename(Backward(build_, result, total).full(total, frame), frame);
  arrived.clear();
  if (!none && wanted_[result.index]) arrived.push_back({whole, AxisList::range(static_cast<int>(frame.size()))});
  return whole;
}

void Sweep::propagate(const Backward& b) {
  for (size_t k = 0; k < b.node.operands.size(); ++k) {
    const NodeId operand = b.node.operands[k];
    if (!depends_[operand.index]) continue;
    build_.origin = backward_origin(build_.graph(), b.id, operand);
    if (const std::optional<Partial> part = gradient_of_operand(b, static_cast<int>(k))) add(operand, *part);
  }
}

void Sweep::add(NodeId operand, Partial part) {
  const DType dtype = build_.type(operand).dtype;
  if (build_.type(part.value).dtype != dtype) part.value = build_.cast(part.value, dtype);
  pending_[operand.index].push_back(part);
}

std::vector<NodeId> differentiate(Builder& build, NodeId y, std::span<const NodeId> wrt, const DifferentiateOptions& options) {
  EINC_CHECK((options.cotangent.valid() || build.type(y).rank() == 0) && is_floating(build.type(y).dtype),
             "only a floating scalar, or a value with a cotangent, can be differentiated");
  const Origin origin = build.origin;
  std::vector<NodeId> gradients;
  build.origin = backward_origin(build.graph(), y, y);
  std::vector<NodeId> before;  // later nodes cannot matter
  for (NodeId w : wrt)
    if (w.index <= y.index) before.push_back(w);
  if (nodes_that_depend(build.graph(), before, options.custom)[y.index]) {
    const Seed seed{y, options.cotangent.valid() ? options.cotangent : build.constant(Poly(1), build.type(y).dtype)};
    const Sweep sweep(build, {&seed, 1}, before, {.custom = options.custom, .met_custom = options.met_custom});
    for (NodeId w : wrt) gradients.push_back(sweep.result(w));
  } else {
    gradients.resize(wrt.size());
  }
  build.origin = origin;
  return gradients;
}

}  // namespace einc
