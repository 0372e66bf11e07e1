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
#include "compiler/partition/device_timeline.h"
#include "compiler/partition/pipeline_timeline.h"
#include "compiler/report/amount.h"
#include "compiler/report/staged_device.h"

namespace einc {

// Collectives alike: of one kind over one mesh axis in one phase, from one source line.
struct CommunicationRow {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Name axis;
  Phase phase = Phase::forward;
  int64_t count = 0;
  Amount bytes;                             // that one device sends, of all of them
  std::string link;                         // that their slowest bytes cross; empty: the device row has none so wide
  std::optional<double> time_s, exposed_s;  // each alone, one after the other; the latter of it while no launch goes on
  double saved_s = 0;                       // of it, by those that go in one move with others
  SourceLocation source;
  std::string what;  // the value that moves: "h.*.mlp up"
  std::string why;
};

// Of one device's launches as planned, for these dims.
struct DeviceStepReport {
  Amount executed;                      // FLOPs
  Amount values, workspace;             // bytes: what collectives move and what a step leaves; what launches work in
  Amount process;                       // that a process holds besides
  Amount peak;                          // of all of them
  std::vector<std::string> recomputed;  // under a memory limit: what the backward makes again
};

// One of a pipeline's stages. Seconds are of launches, with what of their communication is not hidden.
struct StageReport {
  int64_t first = 0, iterations = 0;            // of the loop
  int64_t held = 1;                             // microbatches of which it keeps what the backward needs, at most
  Amount flops, parameters, peak;               // the latter where launches are planned
  int64_t microbatch_bytes = 0;                 // of the peak, that each further microbatch takes which is held
  int64_t process_bytes = 0;                    // likewise, that a process takes besides
  std::optional<double> forward_s, backward_s;  // of a microbatch
  std::optional<double> begin_s, end_s;         // the rest of a step: before the first forward, behind the last backward
  std::optional<double> idle_s;                 // of a step
  std::optional<double> compute_s, exposed_s;   // of a step: launches, and communication while none of them goes on
  std::optional<double> update_s() const { return begin_s && end_s ? std::optional(*begin_s + *end_s) : std::nullopt; }
};

struct PipelineReport {
  Name axis, loop;
  int64_t microbatches = 1;
  size_t shown = 0;  // the stage that all else in the mesh's report is about
  std::vector<StageReport> stages;
  std::vector<StageLink> links;  // of a microbatch; empty: unknown
};

inline constexpr size_t kNoMovement = SIZE_MAX;

struct MeshReport {
  std::vector<std::pair<Name, Amount>> axes;
  Amount devices;
  std::vector<CommunicationRow> rows;            // in the order of the graph
  Amount bytes;                                  // of all rows
  std::optional<double> time_s;                  // one after the other, nothing else meanwhile
  std::vector<size_t> row_of;                    // by collectives_of; kNoMovement: of another stage
  std::vector<CollectiveTime> collective_times;  // by collectives_of; empty where one has no time
  std::vector<double> send_s;                    // likewise, by StagePrograms::sends
  // Of one device: FLOPs of a step, and bytes between steps (gradients: in one).
  Amount flops, parameters, gradients, optimizer_state, inputs;
  std::optional<DeviceStepReport> step;  // where launches are planned
  // Of one device's launches, where they are planned, and of communication while none of them goes on (mesh_step).
  std::optional<double> compute_s, exposed_s;
  std::optional<PipelineReport> pipeline;
  std::optional<double> idle_s;  // of a stage, while others work
  std::optional<double> mfu;     // of all devices, in that time: FLOPs of forward and backward over their peak
  double saved_s() const {
    double saved = 0;
    for (const CommunicationRow& row : rows) saved += row.saved_s;
    return saved;
  }
  std::optional<double> step_time_s() const {
    return exposed_s && compute_s ? std::optional(*exposed_s + *compute_s + idle_s.value_or(0)) : std::nullopt;
  }
};

// `partitioned` is that of `graph`, `local` that of a device; a device's links give times. `staged`: of a mesh with stages whose dims have
// values; then numbers are those of a device of the stage shown.
MeshReport mesh_report(const Graph& graph, const Partitioned& partitioned, const Localized& local, const Bindings& given,
                       const Device* device, const StagedDevice* staged = nullptr);

// --explain=sharding: how every value lies, and every collective with its line, bytes and reason.
std::string explain_sharding(const Graph& graph, const Partitioned& partitioned, const MeshReport& report, int width);

}  // namespace einc
