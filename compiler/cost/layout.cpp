// SPDX-License-Identifier: Apache-2.0
#include "compiler/cost/layout.h"

#include <fmt/format.h>

namespace einc {
namespace {

using Strides = std::vector<Poly>;

Strides contiguous(const Type& type) {
  Strides strides(type.axes.size());
  Poly next(1);
  for (size_t i = type.axes.size(); i-- > 0;) {
    strides[i] = next;
    next *= type.axes[i].size;
  }
  return strides;
}

const Poly& at(const Strides& strides, int i) { return strides[static_cast<size_t>(i)]; }

// Strides of the axes that each of x's axes is split into; the innermost keeps the stride.
Strides split_strides(const Node& node, const Strides& in) {
  const auto& counts = node.as<SplitAttr>().counts;
  Strides out(node.type.axes.size());
  int end = 0;
  for (int i = 0; i < counts.size(); ++i) {
    const int begin = end;
    end += counts[i];
    Poly stride = at(in, i);
    for (int o = end; o-- > begin;) {
      out[static_cast<size_t>(o)] = stride;
      stride *= node.type.axis(o).size;
    }
  }
  return out;
}

// Strides of merged axes, or nothing when some group is not one run in memory: each axis must step over exactly the next.
std::optional<Strides> merge_strides(const Node& node, const Type& from, const Strides& in) {
  Strides out;
  int next = 0;
  for (int count : node.as<MergeAttr>().counts) {
    int inner = -1;
    for (int k = count; k-- > 0;) {
      const int i = next + k;
      if (from.axis(i).size.is_one()) continue;
      if (inner >= 0 && at(in, i) != at(in, inner) * from.axis(inner).size) return std::nullopt;
      inner = i;
    }
    int last = -1;
    for (int k = 0; k < count; ++k)
      if (!from.axis(next + k).size.is_one()) last = next + k;
    out.push_back(last < 0 ? Poly(1) : at(in, last));
    next += count;
  }
  return out;
}

// Strides of a view over its operand's; nothing when it has none.
std::optional<Strides> view_strides(const Graph& graph, const Node& node, const Strides& in) {
  const Type& from = graph.type(node.operands[0]);
  Strides out;
  switch (node.op) {
    case Op::permute:
      for (int i : node.as<PermuteAttr>().order) out.push_back(at(in, i));
      return out;
    case Op::broadcast: {
      out.resize(node.type.axes.size());
      const AxisList& map = node.as<BroadcastAttr>().map;
      for (int i = 0; i < map.size(); ++i) out[static_cast<size_t>(map[i])] = at(in, i);
      return out;
    }
    case Op::split:
      return split_strides(node, in);
    case Op::merge:
      return merge_strides(node, from, in);
    case Op::slice:
      out = in;
      out[static_cast<size_t>(node.as<SliceAttr>().axis)] *= Poly(node.as<SliceAttr>().step);
      return out;
    case Op::diagonal: {
      out.resize(node.type.axes.size());
      const AxisList& map = node.as<DiagonalAttr>().map;
      for (int i = 0; i < map.size(); ++i) out[static_cast<size_t>(map[i])] += at(in, i);
      return out;
    }
    case Op::window: {
      const auto& attr = node.as<WindowAttr>();
      for (int i = 0; i < from.rank(); ++i) {
        if (i != attr.axis)
          out.push_back(at(in, i));
        else
          for (const Poly& step : attr.strides) out.push_back(step * at(in, i));
      }
      return out;
    }
    case Op::stop_gradient:
      return in;
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
  return std::nullopt;
}

std::string axis_text(const Axis& axis) { return axis.name.empty() ? axis.size.str() : axis.name.str(); }

std::string merged_groups(const Graph& graph, const Node& node) {
  const Type& from = graph.type(node.operands[0]);
  std::string text;
  int next = 0;
  for (int count : node.as<MergeAttr>().counts) {
    if (count > 1) {
      text += text.empty() ? "(" : " (";
      for (int k = 0; k < count; ++k) text += (k > 0 ? " " : "") + axis_text(from.axis(next + k));
      text += ")";
    }
    next += count;
  }
  return text;
}

}  // namespace

Layouts analyse_layouts(const Graph& graph) {
  Layouts result{std::vector<bool>(graph.size(), false), std::vector<NodeId>(graph.size())};
  std::vector<Strides> strides(graph.size());  // of views only; other nodes are contiguous
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    result.buffer[i] = NodeId{i};
    if (kind_of(node.op) != OpKind::view) continue;
    const uint32_t x = node.operands[0].index;
    const bool operand_is_view = result.buffer[x].index != x;
    auto mine = view_strides(graph, node, operand_is_view ? strides[x] : contiguous(graph.nodes[x].type));
    if (!mine) {
      result.copies[i] = true;
      continue;
    }
    strides[i] = std::move(*mine);
    result.buffer[i] = result.buffer[x];
  }
  return result;
}

NodeId view_base(const Graph& graph, NodeId id) {
  while (kind_of(graph[id].op) == OpKind::view) id = graph[id].operands[0];
  return id;
}

std::string copy_reason(const Graph& graph, const Layouts& layouts, NodeId id) {
  const Node& node = graph[id];
  if (layouts.copies[id.index]) return fmt::format("merging {}: the axes are not adjacent in memory", merged_groups(graph, node));
  if (node.op == Op::pad) return "pad: the values move into a larger buffer";
  if (node.op == Op::concat) return "concat: the parts move into one buffer";
  if (node.op == Op::gather) return "gather: the rows asked for move together";
  return "";
}

}  // namespace einc
