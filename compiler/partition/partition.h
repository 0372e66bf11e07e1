// SPDX-License-Identifier: Apache-2.0
// The pass `partition`: a program over its mesh. A mesh axis becomes an ordinary axis of the graph: where batch is split over data, a value
// [batch embed] becomes [data batch/data embed], and a value that lacks `data` is the same on all devices along it. Inputs, params,
// states, outputs and updates keep their whole shapes, so that the interpreter runs the graph with the same data: what splits and merges
// them is marked as the program's edge and moves nothing. Layouts start at the shard lines and follow the axes (factors.h); where a value
// must lie otherwise than it does, the steps of mesh_builder.h are put in.
#pragma once
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/partition/layout.h"
#include "compiler/partition/mesh_builder.h"

namespace einc {

// A value at the program's edge: whole, and as devices hold it. Of axes in zigzag order (zigzag.h) parts are parts of that order.
struct EdgeValue {
  NodeId whole, part;
  Layout layout;
  ZigzagAxes zigzag{};
};

struct Partitioned {
  Graph graph;
  std::vector<MeshPositions> positions;                // by node
  BodyPositions bodies;                                // of scans, likewise
  std::vector<bool> edge;                              // by node: between whole values and devices' parts
  std::vector<bool> needed;                            // by node: a root is made of it; the whole of what is made in parts is not
  std::vector<Layout> layouts;                         // by node of the source: how its value lies
  std::vector<ZigzagAxes> zigzag;                      // by node of the source, likewise
  std::vector<EdgeValue> declared;                     // inputs, params and states
  std::vector<EdgeValue> outputs, updates, gradients;  // of the graph's roots, in their order; a param that is not trained has no part
  EdgeValue loss;
};

// A value that cannot be split.
struct NoPartition {
  NodeId node;  // of the source
  int mesh_axis = 0;
  std::string why;
};

// What is known of nodes beyond their ops, by who sees several of them at once.
struct PartitionHints {
  std::unordered_map<uint32_t, std::vector<bool>> yielding;  // by node: labels of its factors that yield (FactorLabel)
  std::vector<std::pair<NodeId, Layout>> wishes;             // how the value is read
  std::unordered_map<uint32_t, ZigzagAxes> zigzag;           // by node: axes whose order is not the program's
  std::vector<std::pair<NodeId, int>> waiting;               // a sum along that mesh axis is left to what reads it
};

// `given` sets dims: layouts are chosen for the values in use. The graph is a final one (composites expanded, dtypes assigned) with a mesh.
std::variant<Partitioned, NoPartition> partition(const Graph& graph, const Bindings& given, const PartitionHints& hints = {});

}  // namespace einc
