// SPDX-License-Identifier: Apache-2.0
// The graph of one device, cut where devices meet: a stage is computed by each device alone, and the collectives behind it are carried out
// by all of them. A stage is a graph of its own; values that come from an earlier one are its inputs, those that are used later its
// outputs.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

// Node ids are those of the graph that was cut.
struct DeviceStage {
  Graph graph;
  std::vector<NodeId> reads;        // made by earlier stages, or by collectives: inputs value_name(id)
  std::vector<NodeId> makes;        // in the order of graph.outputs
  std::vector<NodeId> collectives;  // carried out behind the stage, in this order
};

std::string value_name(NodeId id);

// `results`: nodes whose values are wanted at the end. What follows from constants alone is made in each stage that reads it.
std::vector<DeviceStage> cut_at_collectives(const Graph& graph, std::span<const NodeId> results);

}  // namespace einc
