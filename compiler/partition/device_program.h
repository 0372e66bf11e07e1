// SPDX-License-Identifier: Apache-2.0
// The graph of one device as a program is scheduled: what the run needs, in the order in which devices are to meet. Collectives are nodes
// like others, so whoever forms kernels sees what must run before what; what they move lies in memory of the caller's
// (ir/device_values.h).
#pragma once
#include <span>
#include <vector>

#include "compiler/ir/device_values.h"
#include "compiler/partition/localize.h"

namespace einc {

// Node ids are those of the graph given, but for those inside `graph`.
struct DeviceProgram {
  Graph graph;
  std::vector<NodeId> values;   // by graph.outputs: results, and what collectives read and make
  std::vector<NodeId> targets;  // of updates in place, by those of the graph given: the target in `graph`; invalid: it is not stored there
  struct Meeting {
    NodeId node;
    NodeId place{};       // in `graph`
    uint32_t level = 0;   // collectives on the longest way to it
    bool urgent = false;  // what follows it at once is no optimizer's
  };
  std::vector<Meeting> collectives;  // in the graph's order
};

// Whose values are wanted at the end.
std::vector<NodeId> results_of(const Localized& local);
// Of an update in place: what a collective makes, or a declaration, is stored by whoever runs the program.
bool is_stored_by_launches(const Graph& graph, NodeId value);

DeviceProgram device_program(const Localized& local);

}  // namespace einc
