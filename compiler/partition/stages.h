// SPDX-License-Identifier: Apache-2.0
// The graph of one device, cut where devices meet: what reads a collective's result is in a later stage than what the collective reads. A
// stage is a graph of its own; values that come from an earlier one are its inputs, those that are used later its outputs.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/partition/localize.h"

namespace einc {

// Node ids are those of the graph that was cut.
struct DeviceStage {
  Graph graph;
  std::vector<NodeId> reads;  // made by earlier stages, or by collectives: inputs value_name(id)
  std::vector<NodeId> makes;  // in the order of graph.outputs
};
struct DeviceStages {
  std::vector<DeviceStage> stages;
  std::vector<NodeId> collectives;  // in the graph's order
};

bool is_collective(Op op);
inline constexpr std::string_view kValuePrefix = "value ";  // with a space: no input of a program has such a name
std::string value_name(NodeId id);
// Whose values are wanted at the end.
std::vector<NodeId> results_of(const Localized& local);

// `results`: nodes whose values are wanted at the end. What follows from constants alone is made in each stage that reads it.
DeviceStages cut_at_collectives(const Graph& graph, std::span<const NodeId> results);

}  // namespace einc
