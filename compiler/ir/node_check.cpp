// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/node_check.h"

#include "compiler/ir/node_rules.h"

namespace einc {

std::string NodeRules::run() {
  if (out_.rank() > kMaxRank) return fmt::format("rank {} is above {}", out_.rank(), kMaxRank);
  for (int i = 0; i < out_.rank(); ++i)
    if (const auto n = out_.axis(i).size.as_integer(); n && *n < 1) return fmt::format("axis {} has size {}", i, *n);
  for (const NodeId operand : node_.operands)
    if (operand.index >= id_.index) return fmt::format("operand %{} does not come before it", operand.index);
  const int wanted = operand_count();
  const int given = static_cast<int>(node_.operands.size());
  if (wanted >= 0 && given != wanted) return fmt::format("{} operands instead of {}", given, wanted);
  if (wanted < 0 && given == 0) return "no operands";
  check();
  return problem_;
}

// -1: one or more.
int NodeRules::operand_count() const {
  switch (node_.op) {
    case Op::input:
    case Op::param:
    case Op::state:
    case Op::constant:
    case Op::iota:
    case Op::random:
    case Op::training:
      return 0;
    case Op::map:
      return std::holds_alternative<MapAttr>(node_.attr) ? arity_of(node_.as<MapAttr>().fn) : -1;
    case Op::concat:
      return -1;
    case Op::contract:
    case Op::gather:
    case Op::scatter_add:
    case Op::scatter_max:
    case Op::scatter_min:
      return 2;
    case Op::scatter_set:
      return 3;
    case Op::reduce:
    case Op::cumulate:
    case Op::arg_reduce:
    case Op::top_k_index:
    case Op::permute:
    case Op::broadcast:
    case Op::split:
    case Op::merge:
    case Op::slice:
    case Op::diagonal:
    case Op::window:
    case Op::fold:
    case Op::pad:
    case Op::cast:
    case Op::stop_gradient:
    case Op::softmax:
    case Op::logsumexp:
    case Op::dropout:
    case Op::scan_result:
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::all_gather:
    case Op::all_to_all:
      return 1;
    case Op::shift: {  // between stages more than what is moved may have to be there
      const auto* a = std::get_if<ShiftAttr>(&node_.attr);
      return a != nullptr && a->mesh >= 0 && a->mesh == graph_.mesh.stages.over ? -1 : 1;
    }
    case Op::scan: {
      const auto* a = std::get_if<ScanAttr>(&node_.attr);
      return a != nullptr && node_.operands.empty() && a->slices + a->carries == 0 ? 0 : -1;
    }
  }
  return 0;
}

void NodeRules::check() {
  switch (node_.op) {
    case Op::input:
      attr<InputAttr>();
      return;
    case Op::param:
      attr<ParamAttr>();
      return;
    case Op::state:
      attr<StateAttr>();
      return;
    case Op::constant:
      if (attr<ConstantAttr>() && out_.rank() != 0) fail("a constant has no axes");
      return;
    case Op::iota:
      attr<std::monostate>();
      if (out_.rank() != 1 || out_.dtype == DType::boolean) fail("iota is one axis of numbers");
      return;
    case Op::random:
      return random();
    case Op::map:
      return map();
    case Op::reduce:
      return reduce();
    case Op::logsumexp:
      return reduce();
    case Op::softmax:
      return softmax();
    case Op::cumulate:
      if (const auto* a = attr<CumulateAttr>()) {
        same_axis_kept(a->axis);
        if (a->fn == ReduceFn::logsumexp && !is_floating(out_.dtype)) fail("a logarithm gives floating numbers");
      }
      return;
    case Op::arg_reduce:
      return arg_reduce();
    case Op::top_k_index:
      return top_k();
    case Op::contract:
      return contract();
    case Op::permute:
      return permute();
    case Op::broadcast:
      return broadcast();
    case Op::split:
      return split();
    case Op::merge:
      return merge();
    case Op::slice:
      return slice();
    case Op::diagonal:
      return diagonal();
    case Op::window:
      if (const auto* a = attr<WindowAttr>()) windows(*a, in(0), out_);
      return same_dtype();
    case Op::fold:
      if (const auto* a = attr<WindowAttr>()) windows(*a, out_, in(0));
      return same_dtype();
    case Op::pad:
      return pad();
    case Op::concat:
      return concat();
    case Op::gather:
      if (const auto* a = attr<GatherAttr>()) indexed(*a, in(0), in(1), out_);
      return same_dtype();
    case Op::scatter_add:
    case Op::scatter_max:
    case Op::scatter_min:
      if (const auto* a = attr<GatherAttr>()) indexed(*a, out_, in(1), in(0));
      return same_dtype();
    case Op::scatter_set:
      if (const auto* a = attr<GatherAttr>()) indexed(*a, in(0), in(2), in(1));
      if (!in(0).same_sizes(out_)) fail("the result is not of the base's sizes");
      return same_dtype();
    case Op::cast:
      attr<std::monostate>();
      return same_sizes();
    case Op::stop_gradient:
      attr<std::monostate>();
      same_sizes();
      return same_dtype();
    case Op::scan:
      return scan();
    case Op::scan_result:
      return scan_result();
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::all_gather:
    case Op::all_to_all:
      return collective();
    case Op::shift:
      return shift();
    case Op::dropout:
      if (const auto* a = attr<DropoutAttr>(); a != nullptr && !(a->p >= 0 && a->p < 1)) fail("p is not in [0, 1)");
      same_sizes();
      return same_dtype();
    case Op::training:
      attr<std::monostate>();
      if (out_.rank() != 0 || out_.dtype != DType::boolean) fail("training is one bool");
      return;
  }
}

std::string check_node(const Graph& graph, NodeId id) { return NodeRules(graph, id).run(); }

}  // namespace einc
