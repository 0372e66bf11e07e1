// SPDX-License-Identifier: Apache-2.0
// By the names of the stage's inputs and the order of its outputs: a target may have formed another graph of them.
#include "compiler/report/planned_stage.h"

#include <unordered_map>

#include "compiler/lower/value_launches.h"

namespace einc {

PlannedStage planned_stage(const DeviceStage& stage, const FormedGraph& formed) {
  const Graph& graph = formed.bound.graph;
  std::unordered_map<std::string, NodeId> inputs;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (graph.nodes[i].op == Op::input) inputs.emplace(graph.nodes[i].as<InputAttr>().name.str(), NodeId{i});
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
