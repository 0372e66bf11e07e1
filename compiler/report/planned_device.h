// SPDX-License-Identifier: Apache-2.0
// A device of a mesh as it is planned: between which of its launches what devices share is needed, when collectives go on, and where the
// values lie that they move. The report's numbers, what a limit of memory counts and what runs are read off this.
#pragma once
#include <algorithm>
#include <array>
#include <unordered_map>

#include "compiler/fuse/formed_view.h"
#include "compiler/partition/device_schedule.h"

namespace einc {

// Values of a device that lie outside the memory of its launches: declarations, coordinates, operands and results of collectives, results
// of the program, and copies of declarations that are results, too. Those that are never needed at the same time may share a place. Params,
// states and what the graph says outlast a run of it: a stage has them once for all microbatches.
inline constexpr int64_t kNoPlace = -1;

struct DeviceValues {
  std::vector<int64_t> offsets;                   // of each value; kNoPlace: it lies elsewhere
  std::unordered_map<uint32_t, size_t> of_node;   // by node of the device's graph; several nodes may be one value
  std::unordered_map<uint32_t, size_t> of_copy;   // by declaration
  std::vector<std::pair<NodeId, bool>> value_of;  // of each value a node, and whether it is the declaration's copy
  int64_t bytes = 0;                              // of all places together
  // Of them those that outlast a run of the graph, which stand before all others, and behind them those that its backward has of its
  // forward: inputs, and what is needed on both sides of the first wait for another stage.
  int64_t lasting = 0, kept = 0;
  std::array<int64_t, kPhases> alive{};  // the most that is needed at once, by phase
};

// What a device takes besides a plan's values and the memory that its launches work in. A stage has other rounds, which work one after
// another in the same memory, and what the round of a microbatch keeps once for each that is on its way.
struct HeldBesides {
  int64_t values = 0, working = 0;  // of other rounds: of all, the most
  int64_t process = 0;              // of what the process takes, at least
  int64_t further = 0;              // microbatches

  // All but the process, beside a plan with so much for values and launches, and for what it keeps of each microbatch.
  int64_t with(int64_t of_values, int64_t of_launches, int64_t kept) const {
    return of_values + values + std::max(of_launches, working) + further * kept;
  }
};

struct DevicePlan {
  PlannedDevice planned;
  DeviceSchedule schedule;
  DeviceValues values;
  // Of a stage: the launch with which its backward begins, behind the first wait for what comes back from others, and how far what its
  // launches keep for it reaches into the memory that they work in, from the beginning. Else the end, and nothing.
  uint32_t backward = 0;
  int64_t kept = 0;
  std::array<int64_t, kPhases> in_use{};  // of the memory that launches work in, the most in use, by phase

  int64_t kept_of_microbatch() const { return values.kept + kept; }
};

// `formed`: of the program's graph, or of one alike. `dims`: values for all. `places`: BesidePlan's.
DevicePlan plan_device(const Localized& local, const DeviceProgram& program, const Bindings& dims, const FormedView& formed,
                       std::span<const LaunchPlaces> places);

}  // namespace einc
