// SPDX-License-Identifier: Apache-2.0
// What a node of a partitioned graph, or of a scan's body in one, is on one device.
#pragma once
#include <memory>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/partition/mesh_builder.h"

namespace einc {

// Where each axis of a partitioned node stands on the device; -1: it is the mesh's.
std::vector<int> own_axes(const MeshPositions& positions);
Type own_type(const Type& type, const MeshPositions& positions);

// The mesh axis that a split makes of what each device has whole; kNoMesh: none. And the axis of its operand, on the device, that is split.
int new_mesh_axis_of(const MeshPositions& before, const MeshPositions& after);
int split_axis_of(const Node& split, const std::vector<int>& axes_of_operand);

// A device keeps its part of what it has whole: x[.. m part ..] at its coordinate.
NodeId part_at(Builder& build, NodeId x, int axis, const MeshAxis& m, NodeId coordinate, const Type& part);

// A scan's body on one device. It reads coordinates along these mesh axes, behind the other values that every iteration reads whole.
struct LocalBody {
  std::shared_ptr<const Graph> graph;
  std::vector<int> coordinates;
};
LocalBody local_body(const Graph& body, const std::vector<MeshPositions>& positions, int wholes, const Mesh& mesh);

}  // namespace einc
