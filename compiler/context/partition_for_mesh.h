// SPDX-License-Identifier: Apache-2.0
// A final graph over its mesh, as it is reported, planned and run: the pass `partition`, which goes node by node, told what attention of a
// split sequence needs as a whole. Attention whose rows and keys lie in parts along one mesh axis keeps its rows where they are; its keys
// are gathered, or go round (ring_attention.h) where the mesh keeps them in parts.
#pragma once
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/partition/partition.h"

namespace einc {

// Arguments and results as of partition().
// A value per row and key of a ring has a layout without axes: it is nowhere whole.
std::variant<Partitioned, NoPartition> partition_for_mesh(const Graph& graph, const Bindings& given);

// For --passes.
struct MeshPass {
  std::string_view name, description, reason;
};
std::span<const MeshPass> mesh_passes();

}  // namespace einc
