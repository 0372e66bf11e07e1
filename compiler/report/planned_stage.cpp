// SPDX-License-Identifier: Apache-2.0
// By the order of the stage's inputs and outputs: a target may have formed another graph of them, or that of a stage alike.
#include "compiler/report/planned_stage.h"

#include <unordered_map>

#include "compiler/lower/value_launches.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

std::vector<NodeId> inputs_of(const Graph& graph) {
  std::vector<NodeId> inputs;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (graph.nodes[i].op == Op::input) inputs.push_back(NodeId{i});
  return inputs;
}

}  // namespace

PlannedStage planned_stage(const DeviceStage& stage, const FormedGraph& formed) {
  const Graph& graph = formed.bound.graph;
  const std::vector<NodeId> own = inputs_of(stage.graph), there = inputs_of(graph);
  EINC_CHECK(own.size() == there.size(), "a stage of {} inputs is planned with {}", own.size(), there.size());
  std::unordered_map<std::string, NodeId> inputs;
  for (size_t i = 0; i < own.size(); ++i) inputs.emplace(stage.graph[own[i]].as<InputAttr>().name.str(), there[i]);
  PlannedStage planned;
  planned.launches = static_cast<uint32_t>(formed.list.kernels.size());
  for (const NodeId id : stage.reads) {
    const ReadingLaunches reading = launches_that_read(formed.list, formed.plan, inputs.at(value_name(id)));
    planned.reads.push_back({reading.first, reading.last});
  }
  for (const Output& output : graph.outputs)
    planned.makes.push_back(is_source(graph[output.node].op) ? planned.launches
                                                             : launches_that_make(formed.list, formed.plan, output.node));
  return planned;
}

}  // namespace einc
