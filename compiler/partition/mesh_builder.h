// SPDX-License-Identifier: Apache-2.0
// Builds values of a partitioned graph and lays them out anew. Every move between devices is one of three steps, each over one mesh axis:
//   slice:   each device keeps its part of an axis it has whole (no bytes move)
//   gather:  the parts of an axis are put together on every device
//   combine: what the devices hold is summed, or its extreme taken
// A scalar may also become a term of a sum: itself on the first device along a mesh axis, 0 on the others.
// They are split, merge and reduce over the mesh axis, so that the interpreter runs a partitioned graph as any other.
#pragma once
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/partition/layout.h"
#include "compiler/partition/zigzag.h"

namespace einc {

struct MeshValue {
  NodeId node;
  Layout layout;
};

inline constexpr int kNoMesh = -1;

// A node's axes that are axes of the mesh, by position; kNoMesh for its own.
using MeshPositions = std::vector<int>;
// Of the bodies of scans, by scan: of each node.
using BodyPositions = std::unordered_map<uint32_t, std::vector<MeshPositions>>;

class MeshBuilder {
 public:
  // `source` has the mesh; the new graph has its dims and no nodes.
  MeshBuilder(const Graph& source, Graph& out) : MeshBuilder(source, source.mesh, out) {}

  Builder& build() { return build_; }
  const Mesh& mesh() const { return mesh_; }
  std::vector<MeshPositions>& positions() { return positions_; }
  BodyPositions& bodies() { return bodies_; }

  // A node of the source, as it is: for what lies whole on each device.
  NodeId whole(const Node& node);
  // The node computed on parts: operands as laid out for it, `rows` as decided.
  MeshValue compute(NodeId id, std::span<const MeshValue> operands, const Layout& result, const AxisList& rows);
  // A scan whose iterations are computed on parts. `labels`: of its body (scan_factors.h), and `over`: what splits them.
  MeshValue scan(NodeId id, std::span<const MeshValue> operands, const std::vector<std::vector<int>>& labels,
                 std::span<const AxisList> over);
  MeshValue scan_result(NodeId id, NodeId scan, const Layout& layout);
  // The source's axes are those of `full`.
  MeshValue relayout(const MeshValue& from, const Layout& target, const Type& full);

  // Numbers that lie alike, as one value with an axis of so many places, and one of such a value that lies whole.
  MeshValue side_by_side(std::span<const MeshValue> numbers);
  MeshValue number_at(const MeshValue& list, int64_t place);

  // What lies whole, its axes put into the order of the zigzag or back.
  MeshValue reordered(const MeshValue& whole, const ZigzagAxes& zigzag, ZigzagMove move);

  Type type_of(const Type& full, const Layout& layout) const;

 private:
  MeshBuilder(const Graph& source, const Mesh& mesh, Graph& out) : source_(source), mesh_(mesh), build_(out) {}
  NodeId append(Node node, MeshPositions positions);
  MeshPositions leading(const AxisList& mesh_axes, size_t own) const;
  MeshValue slice(const MeshValue& from, int axis, int m, const Type& full);
  MeshValue gather(const MeshValue& from, int axis, int m, const Type& full);
  MeshValue as_term(const MeshValue& from, int m, const Type& full);
  MeshValue combine(const MeshValue& from, const Unreduced& partial, const Type& full);
  bool slice_where_free(MeshValue& part, const Layout& target, const Type& full);
  NodeId permuted(NodeId x, const AxisList& order);
  void place_whole(uint32_t first);  // nodes from this one on have none of the mesh's axes
  void shift_attributes(Node& node, std::span<const MeshValue> operands, const Layout& result) const;

  // Which rows of a table's part an index means, and whether it lies on this device at all. Both have the mesh axes of the ids and of the
  // table's rows, then the ids' own axes.
  struct Rows {
    NodeId index, inside;
    AxisList mesh_axes;
  };
  Rows local_rows(const MeshValue& ids, const AxisList& rows, const Poly& size);
  NodeId aligned(MapFn fn, std::initializer_list<NodeId> operands);
  NodeId integer(const Poly& value, DType dtype);
  NodeId coordinate(int m, DType dtype);  // of each device along mesh axis m
  Axis axis_of(int m) const { return {mesh().axes[static_cast<size_t>(m)].name, mesh().axes[static_cast<size_t>(m)].size}; }
  // value where `inside` holds, else 0; its own axis i lies on axis own_map[i] of the value.
  NodeId masked(const MeshValue& value, const Rows& rows, const AxisList& own_map);
  MeshValue gather_rows(NodeId id, std::span<const MeshValue> operands, const Layout& result, const AxisList& rows);
  MeshValue scatter_rows(NodeId id, std::span<const MeshValue> operands, const Layout& result, const AxisList& rows);

  const Graph& source_;
  const Mesh& mesh_;
  Builder build_;
  std::vector<MeshPositions> positions_;
  BodyPositions bodies_;
};

}  // namespace einc
