// SPDX-License-Identifier: Apache-2.0
// Scans of a partitioned graph. In the body, too, axes of the mesh stand before a value's own. Of what iterations read and collect one by
// one, the axis of iterations comes first.
#include "compiler/ir/scan.h"
#include "compiler/partition/mesh_builder.h"

namespace einc {
namespace {

// An axis behind `lead` others comes first, or the first one stands behind them.
AxisList moved_axis(int rank, int from, int to) {
  AxisList order;
  for (int i = 0; i < rank; ++i)
    if (i != from) order.push_back(i);
  AxisList out;
  for (int i = 0, next = 0; i < rank; ++i) out.push_back(i == to ? from : order[next++]);
  return out;
}

}  // namespace

MeshValue MeshBuilder::scan(NodeId id, std::span<const MeshValue> operands, const std::vector<std::vector<int>>& labels,
                            std::span<const AxisList> over) {
  Node node = source_[id];
  auto& attr = std::get<ScanAttr>(node.attr);
  const Graph& from = *attr.body;
  const auto body = std::make_shared<Graph>(without_nodes(from));
  body->updates.clear();      // they name nodes of the body given
  body->dims = source_.dims;  // with the sizes of the mesh
  MeshBuilder inside(from, mesh_, *body);
  std::vector<MeshValue> at;
  for (uint32_t i = 0; i < from.size(); ++i) {
    const Node& source = from.nodes[i];
    Layout layout(source.type.rank());
    for (int a = 0; a < source.type.rank(); ++a)
      if (const int label = labels[i][static_cast<size_t>(a)]; label >= 0) layout.over(a) = over[static_cast<size_t>(label)];
    std::vector<MeshValue> given;
    for (const NodeId operand : source.operands) given.push_back(at[operand.index]);
    inside.build().origin = source.origin;
    // Made whole, and a part of it kept: the number at a place is the same for any number of devices.
    const bool by_place = source.op == Op::iota || source.op == Op::random;
    at.push_back(by_place ? inside.relayout({inside.whole(source), Layout(source.type.rank())}, layout, source.type)
                          : inside.compute(NodeId{i}, given, layout, {}));
  }
  for (const Update& update : from.updates) body->updates.push_back({at[update.target.index].node, at[update.value.index].node});
  attr.body = body;
  const int wholes = whole_operands(node), slices = attr.slices;
  for (int k = 0; k < static_cast<int>(operands.size()); ++k) {
    const MeshValue& value = operands[static_cast<size_t>(k)];
    const int lead = value.layout.mesh_axes(mesh()).size();
    const bool is_slice = k >= wholes && k < wholes + slices;
    node.operands[static_cast<size_t>(k)] =
        is_slice ? permuted(value.node, moved_axis(build_.type(value.node).rank(), lead, 0)) : value.node;
  }
  build_.origin = node.origin;
  const NodeId made = append(std::move(node), {});
  bodies_.emplace(made.index, std::move(inside.positions_));
  return {made, Layout(0)};
}

MeshValue MeshBuilder::scan_result(NodeId id, NodeId scan, const Layout& layout) {
  Node node = source_[id];
  const Type full = node.type;
  const bool collected = node.as<ScanResultAttr>().index >= build_.graph()[scan].as<ScanAttr>().carries;
  const int lead = layout.mesh_axes(mesh()).size();
  node.operands[0] = scan;
  node.type = type_of(full, layout);
  MeshPositions positions = leading(layout.mesh_axes(mesh()), full.axes.size());
  if (!collected || lead == 0) return {append(std::move(node), std::move(positions)), layout};
  const auto iterations = node.type.axes.begin() + lead;
  std::rotate(node.type.axes.begin(), iterations, iterations + 1);
  std::rotate(positions.begin(), positions.begin() + lead, positions.begin() + lead + 1);
  const NodeId made = append(std::move(node), std::move(positions));
  return {permuted(made, moved_axis(full.rank() + lead, 0, lead)), layout};
}

}  // namespace einc
