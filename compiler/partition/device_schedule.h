// SPDX-License-Identifier: Apache-2.0
// The static schedule of one device: between which of its launches it starts collectives and waits for them. A collective starts as soon as
// what it reads is made, and is waited for where its result is first read. A gather starts later, since the whole that it makes is larger
// than the parts: when the layer before reads what it gathered as the first, second, .. of its own, so that as much as one layer gathers is
// on its way or waits to be read, and collectives start in the order in which they are needed. A sum of gradients is read at the step's
// end, but its terms lie in memory until it is waited for, if it is not made in their place: no more of them are on their way than two
// layers have. A gather of a few bytes goes in one move with the one before it. A block of a ring goes on when what stands before it in the
// graph begins, so that a device holds as many blocks for any number of devices. What is stored behind an agreement no collective reads any
// more.
#pragma once
#include <algorithm>
#include <vector>

#include "compiler/partition/device_program.h"
#include "runtime/base/collective.h"

namespace einc {

// The program as it was planned.
struct PlannedDevice {
  uint32_t launches = 0;                     // collectives among them
  std::vector<std::vector<uint32_t>> reads;  // by DeviceProgram::collectives: launches that read their results
  std::vector<uint32_t> stands;              // by DeviceProgram::collectives: launches that they are themselves
  std::vector<int64_t> bytes;                // by DeviceProgram::collectives: of what they read
  std::vector<std::vector<uint32_t>> makes;  // by DeviceProgram::values: launches that write them; none: a collective makes it
  std::vector<uint32_t> agreements;          // places where all devices agree before they store
  std::vector<bool> in_place;                // by DeviceProgram::collectives: sums whose results lie where their terms do
  // So many launches make the value of this number.
  uint32_t made_by(size_t value) const { return makes[value].empty() ? 0 : std::ranges::max(makes[value]) + 1; }
};

struct DeviceSchedule {
  std::vector<NodeId> collectives;  // in the order of their starts: those that a step's number means
  std::vector<DeviceStep> steps;
};

// `graph` is what the program was made of.
DeviceSchedule schedule_device(const Graph& graph, const DeviceProgram& program, const PlannedDevice& planned);

}  // namespace einc
