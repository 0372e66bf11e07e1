// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/local_parts.h"

#include <algorithm>

#include "compiler/ir/scan.h"
#include "compiler/partition/strip_mesh.h"

namespace einc {

std::vector<int> own_axes(const MeshPositions& positions) {
  std::vector<int> axes;
  int next = 0;
  for (const int m : positions) axes.push_back(m == kNoMesh ? next++ : -1);
  return axes;
}

Type own_type(const Type& type, const MeshPositions& positions) {
  Type own{type.dtype, {}};
  for (size_t i = 0; i < type.axes.size(); ++i)
    if (positions[i] == kNoMesh) own.axes.push_back(type.axes[i]);
  return own;
}

int new_mesh_axis_of(const MeshPositions& before, const MeshPositions& after) {
  for (const int m : after)
    if (m != kNoMesh && std::ranges::find(before, m) == before.end()) return m;
  return kNoMesh;
}

int split_axis_of(const Node& split, const std::vector<int>& axes_of_operand) {
  const AxisList& counts = split.as<SplitAttr>().counts;
  for (int i = 0; i < counts.size(); ++i)
    if (counts[i] > 1) return axes_of_operand[static_cast<size_t>(i)];
  return 0;
}

NodeId part_at(Builder& build, NodeId x, int axis, const MeshAxis& m, NodeId coordinate, const Type& part) {
  const int rank = build.type(x).rank();
  AxisList counts;
  std::vector<Axis> axes = part.axes;
  for (int i = 0; i < rank; ++i) counts.push_back(i == axis ? 2 : 1);
  axes.insert(axes.begin() + axis, Axis{m.name, m.size});
  const NodeId parts = build.split(x, counts, axes);
  GatherAttr attr{axis, {}, {}};
  for (int i = 0, next = 0; i <= rank; ++i) attr.table_map.push_back(i == axis ? kNoAxis : next++);
  return build.gather(parts, coordinate, attr, part.axes);
}

LocalBody local_body(const Graph& body, const std::vector<MeshPositions>& positions, int wholes, const Mesh& mesh) {
  const auto made_axis = [&](const Node& node, uint32_t i) {
    return node.op == Op::split ? new_mesh_axis_of(positions[node.operands[0].index], positions[i]) : kNoMesh;
  };
  // Coordinates first: operands that are read whole come before slices, whose numbers follow from how many there are.
  LocalBody out;
  for (uint32_t i = 0; i < body.size(); ++i)
    if (const int m = made_axis(body.nodes[i], i); m != kNoMesh && std::ranges::find(out.coordinates, m) == out.coordinates.end())
      out.coordinates.push_back(m);
  const auto graph = std::make_shared<Graph>(without_nodes(body));
  Builder build(*graph);
  std::vector<NodeId> coordinates;
  for (size_t c = 0; c < out.coordinates.size(); ++c)
    coordinates.push_back(build.input(scan_name(static_cast<size_t>(wholes) + c), Type{DType::i32, {}}));
  std::vector<NodeId> at;
  for (uint32_t i = 0; i < body.size(); ++i) {
    Node node = body.nodes[i];
    build.origin = node.origin;
    if (const int m = made_axis(node, i); m != kNoMesh) {
      const auto c = static_cast<size_t>(std::ranges::find(out.coordinates, m) - out.coordinates.begin());
      at.push_back(part_at(build, at[node.operands[0].index], split_axis_of(node, own_axes(positions[node.operands[0].index])),
                           mesh.axes[static_cast<size_t>(m)], coordinates[c], own_type(node.type, positions[i])));
      continue;
    }
    node.type = own_type(node.type, positions[i]);
    std::vector<std::vector<int>> from;
    for (NodeId& operand : node.operands) from.push_back(own_axes(positions[operand.index])), operand = at[operand.index];
    strip_mesh(node, body.nodes[i], from, own_axes(positions[i]));
    // What is read one by one is numbered behind the coordinates.
    if (auto* input = std::get_if<InputAttr>(&node.attr))
      if (const int k = std::stoi(input->name.str()); k >= wholes) input->name = scan_name(static_cast<size_t>(k) + out.coordinates.size());
    at.push_back(build.append(std::move(node)));
  }
  for (Update& update : graph->updates) update = {at[update.target.index], at[update.value.index]};
  out.graph = graph;
  return out;
}

}  // namespace einc
