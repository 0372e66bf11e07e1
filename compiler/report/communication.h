// SPDX-License-Identifier: Apache-2.0
// What a program's mesh costs: the bytes that each device sends in a step, by kind, mesh axis and source line, their time on the links of a
// device row, and what of the program lies on one device. Read off the partitioned graph (partition/collectives.h), which the interpreter
// holds to the whole program.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/cost/device.h"
#include "compiler/partition/collectives.h"
#include "compiler/report/amount.h"

namespace einc {

// Collectives alike: of one kind over one mesh axis in one phase, from one source line.
struct CommunicationRow {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Name axis;
  Phase phase = Phase::forward;
  int64_t count = 0;
  Amount bytes;      // that one device sends, of all of them
  std::string link;  // that their slowest bytes cross; empty: the device row has none so wide
  std::optional<double> time_s;
  SourceLocation source;
  std::string what;  // the value that moves: "h.*.mlp up"
  std::string why;
};

struct MeshReport {
  std::vector<std::pair<Name, Amount>> axes;
  Amount devices;
  std::vector<CommunicationRow> rows;  // in the order of the graph
  Amount bytes;                        // of all rows
  std::optional<double> time_s;        // one after the other, nothing else meanwhile
  // Of one device: FLOPs of a step, and bytes between steps (gradients: in one).
  Amount flops, parameters, gradients, optimizer_state, inputs;
  std::optional<double> compute_s;  // of one device's launches, where they are planned (mesh_step)
  std::optional<double> mfu;        // of all devices, in that time: FLOPs of forward and backward over their peak
  // Nothing is hidden: each collective waits for the work before it, and the work behind it for the collective.
  std::optional<double> step_time_s() const { return time_s && compute_s ? std::optional(*time_s + *compute_s) : std::nullopt; }
};

// `partitioned` is that of `graph`; a device's links give times.
MeshReport mesh_report(const Graph& graph, const Partitioned& partitioned, const Bindings& given, const Device* device);

// --explain=sharding: how every value lies, and every collective with its line, bytes and reason.
std::string explain_sharding(const Graph& graph, const Partitioned& partitioned, const MeshReport& report, int width);

}  // namespace einc
