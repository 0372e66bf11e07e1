// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/driver/node_names.h"
#include "compiler/elaborate/show.h"

namespace einc {
namespace {

std::string pad_to(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

// What the reader wants to know about a backward node: the forward value whose gradient it is, and where that stands.
std::string origin_text(const Node& node) {
  const std::string& label = node.origin.label.str();
  std::string text;
  if (node.origin.phase == Phase::backward && label.rfind("d ", 0) == 0) text = "gradient of " + label.substr(2);
  if (!node.origin.module.empty()) text += (text.empty() ? "in " : " in ") + node.origin.module.str();
  if (const std::string where = location_text(node.origin.location); !where.empty()) text += (text.empty() ? "" : ", ") + where;
  return text;
}

std::string shape_text(const Type& type, const Bindings& values) {
  std::string text = "(";
  for (const Axis& a : type.axes) {
    const std::optional<int64_t> size = a.size.evaluate_integer(values);
    text += (text.size() == 1 ? "" : ", ") + (size ? std::to_string(*size) : std::string("?"));
  }
  return text + ")";
}

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
      continue;
    }
    result += c;
  }
  return result;
}

}  // namespace

std::string emit_grad(const Graph& graph) {
  const std::vector<std::string> names = node_names(graph);
  std::vector<bool> listed(graph.size(), false);
  std::string text = fmt::format("# {}: the backward, in the order it runs\n", graph.name.str());
  auto list_phase = [&](Phase phase) {
    struct Line {
      std::string left, comment;
    };
    std::vector<Line> lines;
    size_t width = 0;
    for (uint32_t i = 0; i < graph.size(); ++i) {
      const Node& node = graph.nodes[i];
      if (node.origin.phase != phase || node.op == Op::constant || kind_of(node.op) == OpKind::source) continue;
      lines.push_back(
          {fmt::format("{}: {} = {}", names[i], to_string(node.type), node_expression(graph, NodeId{i}, names)), origin_text(node)});
      if (lines.back().left.size() <= 100) width = std::max(width, lines.back().left.size());
    }
    for (const Line& line : lines)
      text += line.comment.empty() ? line.left + "\n" : fmt::format("{}  # {}\n", pad_to(line.left, width), line.comment);
  };
  list_phase(Phase::backward);
  for (const Update& g : graph.gradients) text += fmt::format("gradient {} = {}\n", names[g.target.index], names[g.value.index]);
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return n.origin.phase == Phase::optimizer; })) {
    text += "\n# the optimizer\n";
    list_phase(Phase::optimizer);
    for (const Update& u : graph.updates) text += fmt::format("{} <- {}\n", names[u.target.index], names[u.value.index]);
  }
  return text;
}

std::string emit_shapes(const Graph& graph, const Bindings& values) {
  const std::vector<std::string> names = node_names(graph);
  std::vector<std::array<std::string, 3>> rows;
  size_t name_width = 0, type_width = 0;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    const bool source = node.op == Op::input || node.op == Op::param || node.op == Op::state;
    if (!source && (node.origin.label.empty() || node.origin.phase != Phase::forward)) continue;
    rows.push_back({names[i], show(graph, node.type), shape_text(node.type, values)});
    name_width = std::max(name_width, std::min<size_t>(rows.back()[0].size(), 40));
    type_width = std::max(type_width, std::min<size_t>(rows.back()[1].size(), 70));
  }
  std::string text;
  for (const auto& row : rows) text += fmt::format("{}  {}  {}\n", pad_to(row[0], name_width), pad_to(row[1], type_width), row[2]);
  return text;
}

std::string emit_dot(const Graph& graph) {
  const std::vector<std::string> names = node_names(graph);
  std::string text = fmt::format("digraph \"{}\" {{\n  node [shape=box, style=filled, fontname=monospace];\n", escaped(graph.name.str()));
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    const char* colour = kind_of(node.op) == OpKind::source     ? "#eeeeee"
                         : node.origin.phase == Phase::forward  ? "#d7e8fa"
                         : node.origin.phase == Phase::backward ? "#fae1d7"
                                                                : "#def5d9";
    const std::string op = node.op == Op::map ? std::string(to_string(node.as<MapAttr>().fn)) : std::string(to_string(node.op));
    text +=
        fmt::format("  n{} [label=\"{}\\n{}\\n{}\", fillcolor=\"{}\"];\n", i, escaped(names[i]), op, escaped(to_string(node.type)), colour);
    for (NodeId operand : node.operands) text += fmt::format("  n{} -> n{};\n", operand.index, i);
  }
  return text + "}\n";
}

std::string emit_json(const Graph& graph) {
  const std::vector<std::string> names = node_names(graph);
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    nlohmann::ordered_json row;
    row["id"] = i;
    row["name"] = names[i];
    row["op"] = to_string(node.op);
    if (node.op == Op::map) row["fn"] = to_string(node.as<MapAttr>().fn);
    row["dtype"] = to_string(node.type.dtype);
    row["axes"] = nlohmann::ordered_json::array();
    for (const Axis& a : node.type.axes) row["axes"].push_back({{"name", a.name.str()}, {"size", a.size.str()}});
    row["operands"] = nlohmann::ordered_json::array();
    for (NodeId operand : node.operands) row["operands"].push_back(operand.index);
    row["expression"] = node_expression(graph, NodeId{i}, names);
    row["phase"] = to_string(node.origin.phase);
    row["module"] = node.origin.module.str();
    row["source"] = {
        {"file", node.origin.location.file.str()}, {"line", node.origin.location.line}, {"column", node.origin.location.column}};
    nodes.push_back(std::move(row));
  }
  nlohmann::ordered_json all;
  all["model"] = graph.name.str();
  all["nodes"] = std::move(nodes);
  all["outputs"] = nlohmann::ordered_json::array();
  for (const Output& o : graph.outputs) all["outputs"].push_back({{"name", o.name.str()}, {"node", o.node.index}});
  all["updates"] = nlohmann::ordered_json::array();
  for (const Update& u : graph.updates) all["updates"].push_back({{"target", u.target.index}, {"value", u.value.index}});
  if (graph.loss.valid()) all["loss"] = graph.loss.index;
  return all.dump(1) + "\n";
}

std::string explain_contraction(const Graph& graph, const Bindings& values) {
  if (graph.plans.empty()) return "No einsum has three or more operands.\n";
  std::string text;
  for (const ContractionPlan& plan : graph.plans) {
    const std::optional<Rational> flops = plan.flops.evaluate(values);
    text += fmt::format("{}: \"{}\"\n  order {} ({})\n  {} FLOPs{}\n", location_text(plan.location), plan.pattern, plan.order, plan.method,
                        plan.flops.str(), flops ? " = " + flops->str() : std::string());
  }
  return text;
}

std::string explain_precision(const Graph& graph) {
  const std::vector<std::string> names = node_names(graph);
  size_t width = 0;
  for (const std::string& n : names) width = std::max(width, std::min<size_t>(n.size(), 48));
  std::string text;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op == Op::constant) continue;
    text +=
        fmt::format("{}  {:<7} {:<10} {}\n", pad_to(names[i], width), to_string(node.type.dtype), to_string(node.op), node.reason.str());
  }
  return text;
}

}  // namespace einc
