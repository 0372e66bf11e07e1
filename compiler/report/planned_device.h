// SPDX-License-Identifier: Apache-2.0
// A device of a mesh as it is planned: between which of its launches what devices share is needed, when collectives go on, and where the
// values lie that they move. The report's numbers, what a limit of memory counts and what runs are read off this.
#pragma once
#include <unordered_map>

#include "compiler/fuse/formed_view.h"
#include "compiler/partition/device_schedule.h"

namespace einc {

// Values of a device that lie outside the memory of its launches: declarations, coordinates, operands and results of collectives, results
// of the program, and copies of declarations that are results, too. Those that are never needed at the same time may share a place.
struct DeviceValues {
  std::vector<int64_t> offsets;                   // of each value
  std::unordered_map<uint32_t, size_t> of_node;   // by node of the device's graph; several nodes may be one value
  std::unordered_map<uint32_t, size_t> of_copy;   // by declaration
  std::vector<std::pair<NodeId, bool>> value_of;  // of each value a node, and whether it is the declaration's copy
  int64_t bytes = 0;                              // of all places together
  int64_t kept = 0;                               // of those that a forward makes and its backward reads
};

struct DevicePlan {
  PlannedDevice planned;
  DeviceSchedule schedule;
  DeviceValues values;
};

// `formed`: of the program's graph, or of one alike. `dims`: values for all. `places`: BesidePlan's.
DevicePlan plan_device(const Localized& local, const DeviceProgram& program, const Bindings& dims, const FormedView& formed,
                       std::span<const LaunchPlaces> places);

}  // namespace einc
