// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/node_names.h"

#include <fmt/format.h>

#include <cctype>
#include <unordered_map>

namespace einc {
namespace {

std::string base_name(const Node& node) {
  if (node.op == Op::input) return node.as<InputAttr>().name.str();
  if (node.op == Op::param) return node.as<ParamAttr>().path.str();
  if (node.op == Op::state) return node.as<StateAttr>().path.str();
  std::string label = node.origin.label.str();
  for (char& c : label)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.') c = '_';
  if (!label.empty() && !node.origin.module.empty() && label.rfind("d_", 0) != 0) return node.origin.module.str() + "." + label;
  return label;
}

// Letters for the axes of an einsum: axis names where they are distinct, else a0, a1, ...
std::vector<std::string> label_names(const Graph& graph, const Node& node) {
  const auto& attr = node.as<ContractAttr>();
  std::vector<std::string> names;
  auto take = [&](NodeId operand, const AxisList& labels) {
    for (int i = 0; i < labels.size(); ++i) {
      const size_t label = static_cast<size_t>(labels[i]);
      if (names.size() <= label) names.resize(label + 1);
      const Axis& axis = graph.type(operand).axis(i);
      if (names[label].empty()) names[label] = axis.is_named() ? axis.name.str() : "";
    }
  };
  take(node.operands[0], attr.left);
  take(node.operands[1], attr.right);
  for (size_t i = 0; i < names.size(); ++i) {
    bool clash = names[i].empty();
    for (size_t j = 0; j < i; ++j) clash = clash || names[j] == names[i];
    if (clash) names[i] = fmt::format("a{}", i);
  }
  return names;
}

std::string contraction_text(const Graph& graph, const Node& node, const std::string& left, const std::string& right) {
  const std::vector<std::string> names = label_names(graph, node);
  auto term = [&](const AxisList& labels) {
    std::string text;
    for (int label : labels) text += (text.empty() ? "" : " ") + names[static_cast<size_t>(label)];
    return text;
  };
  const auto& attr = node.as<ContractAttr>();
  return fmt::format("einsum({}, {}, \"{}, {} -> {}\")", left, right, term(attr.left), term(attr.right),
                     term(AxisList::range(node.type.rank())));
}

std::string axis_text(const Axis& axis) { return axis.name.empty() ? axis.size.str() : axis.name.str(); }

std::string axes_text(const Type& type) {
  std::string text;
  for (const Axis& a : type.axes) text += (text.empty() ? "" : " ") + axis_text(a);
  return text;
}

std::string scalar_text(const ScalarValue& value) {
  if (const Poly* p = std::get_if<Poly>(&value)) return p->is_monomial() || p->is_constant() ? p->str() : "(" + p->str() + ")";
  return fmt::format("{}", std::get<double>(value));
}

}  // namespace

std::vector<std::string> node_names(const Graph& graph) {
  std::vector<std::string> names(graph.size());
  std::unordered_map<std::string, int> used;
  int unnamed = 0;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    std::string name = base_name(graph.nodes[i]);
    if (name.empty()) name = fmt::format("t{}", ++unnamed);
    const int count = ++used[name];
    names[i] = count == 1 ? name : fmt::format("{}_{}", name, count);
  }
  return names;
}

std::string node_expression(const Graph& graph, NodeId id, const std::vector<std::string>& names) {
  const Node& node = graph[id];
  auto operand = [&](size_t k) {
    const Node& o = graph[node.operands[k]];
    return o.op == Op::constant ? scalar_text(o.as<ConstantAttr>().value) : names[node.operands[k].index];
  };
  auto all = [&] {
    std::string text;
    for (size_t k = 0; k < node.operands.size(); ++k) text += (k == 0 ? "" : ", ") + operand(k);
    return text;
  };
  switch (node.op) {
    case Op::input:
    case Op::param:
    case Op::state:
      return std::string(to_string(node.op));
    case Op::constant:
      return scalar_text(node.as<ConstantAttr>().value);
    case Op::iota:
      return fmt::format("iota({})", axes_text(node.type));
    case Op::random:
      return fmt::format("{}({})", to_string(node.as<RandomAttr>().kind), axes_text(node.type));
    case Op::map: {
      const MapFn fn = node.as<MapAttr>().fn;
      switch (form_of(fn)) {
        case MapForm::infix:
          return fmt::format("{} {} {}", operand(0), spelling_of(fn), operand(1));
        case MapForm::prefix:
          return fmt::format("{}{}{}", spelling_of(fn), fn == MapFn::logical_not ? " " : "", operand(0));
        case MapForm::call:
          return fmt::format("{}({})", spelling_of(fn), all());
      }
      return "";
    }
    case Op::reduce:
    case Op::softmax:
    case Op::logsumexp: {
      const auto& attr = node.as<ReduceAttr>();
      std::string axes;
      for (int a : attr.axes) axes += ", " + axis_text(graph.type(node.operands[0]).axis(a));
      return fmt::format("{}({}{})", node.op == Op::reduce ? to_string(attr.fn) : to_string(node.op), operand(0), axes);
    }
    case Op::cumulate: {
      const auto& attr = node.as<CumulateAttr>();
      const std::string name = attr.fn == ReduceFn::logsumexp ? "logcumsumexp" : fmt::format("cum{}", to_string(attr.fn));
      return fmt::format("{}({}, {}{})", name, operand(0), axis_text(node.type.axis(attr.axis)),
                         attr.direction == Direction::reverse ? ", reverse" : "");
    }
    case Op::arg_reduce: {
      const auto& attr = node.as<ArgReduceAttr>();
      return fmt::format("arg{}({}, {})", to_string(attr.fn), operand(0), axis_text(graph.type(node.operands[0]).axis(attr.axis)));
    }
    case Op::top_k_index: {
      const int axis = node.as<TopKAttr>().axis;
      return fmt::format("top_k_index({}, {}, {}{})", operand(0), axis_text(graph.type(node.operands[0]).axis(axis)),
                         node.type.axis(axis).size.str(), node.as<TopKAttr>().fn == ReduceFn::min ? ", smallest" : "");
    }
    case Op::contract:
      return contraction_text(graph, node, operand(0), operand(1));
    case Op::permute:
    case Op::split:
    case Op::merge:
    case Op::diagonal:
    case Op::window:
    case Op::fold:
      return fmt::format("{}({}) -> [{}]", to_string(node.op), operand(0), axes_text(node.type));
    case Op::broadcast:
      return fmt::format("repeat({}) -> [{}]", operand(0), axes_text(node.type));
    case Op::slice: {
      const auto& attr = node.as<SliceAttr>();
      const Axis& axis = node.type.axis(attr.axis);
      return fmt::format("{}[{} = {}:{}{}]", operand(0), axis_text(axis), attr.start.str(),
                         (attr.start + axis.size * Poly(attr.step)).str(), attr.step == 1 ? "" : fmt::format(":{}", attr.step));
    }
    case Op::pad:
      return fmt::format("pad({}) -> {}", operand(0), to_string(node.type));
    case Op::concat:
      return fmt::format("concat({}, {})", all(), axis_text(node.type.axis(node.as<ConcatAttr>().axis)));
    case Op::gather:
      return fmt::format("{}[{} = {}]", operand(0), axis_text(graph.type(node.operands[0]).axis(node.as<GatherAttr>().axis)), operand(1));
    case Op::scatter_add:
    case Op::scatter_max:
    case Op::scatter_min:
      return fmt::format("{}({}, {} = {})", to_string(node.op), operand(0), axis_text(node.type.axis(node.as<GatherAttr>().axis)),
                         operand(1));
    case Op::scatter_set:
      return fmt::format("{} with [{} = {}] <- {}", operand(0), axis_text(node.type.axis(node.as<GatherAttr>().axis)), operand(2),
                         operand(1));
    case Op::cast:
      return fmt::format("cast({}, {})", operand(0), to_string(node.type.dtype));
    case Op::stop_gradient:
      return fmt::format("stop_gradient({})", operand(0));
    case Op::scan:
      return fmt::format("scan({}) of {} iterations{}", all(), node.as<ScanAttr>().length.str(),
                         node.as<ScanAttr>().direction == Direction::reverse ? ", reversed" : "");
    case Op::scan_result:
      return fmt::format("{}.{}", operand(0), node.as<ScanResultAttr>().index);
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::all_gather:
    case Op::all_to_all:
      return fmt::format("{}({}, mesh axis {})", to_string(node.op), operand(0), node.as<CollectiveAttr>().mesh);
    case Op::shift:
      return fmt::format("shift({}, {} along {}axis {})", operand(0), node.as<ShiftAttr>().by, node.as<ShiftAttr>().mesh < 0 ? "" : "mesh ",
                         std::max(node.as<ShiftAttr>().mesh, node.as<ShiftAttr>().axis));
    case Op::dropout:
      return fmt::format("dropout({}, {})", operand(0), node.as<DropoutAttr>().p);
    case Op::training:
      return "training";
  }
  return "";
}

std::string location_text(const SourceLocation& location) {
  if (location.line == 0) return "";
  return fmt::format("{}:{}:{}", location.file.str(), location.line, location.column);
}

}  // namespace einc
