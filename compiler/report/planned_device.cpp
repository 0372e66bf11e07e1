// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/planned_device.h"

#include <unordered_map>

#include "compiler/lower/value_launches.h"
#include "runtime/base/check.h"

namespace einc {

PlannedDevice planned_device(const DeviceProgram& program, const FormedGraph& formed) {
  PlannedDevice planned;
  planned.launches = static_cast<uint32_t>(formed.list.kernels.size());
  std::unordered_map<uint32_t, uint32_t> stands;
  for (uint32_t l = 0; l < planned.launches; ++l)
    if (formed.list.kernels[l].kernel->collective) stands[formed.list.kernels[l].group.members.front().index] = l;
  for (const DeviceProgram::Meeting& c : program.collectives) planned.stands.push_back(stands.at(formed.place_of(c.place).index));
  for (const DeviceProgram::Meeting& c : program.collectives)
    planned.reads.push_back(launches_that_touch(formed.list, formed.plan, formed.place_of(c.place)));
  const std::vector<Output>& outputs = formed.bound.graph.outputs;
  EINC_CHECK(outputs.size() == program.values.size(), "a device of {} values is planned with {}", program.values.size(), outputs.size());
  for (const Output& output : outputs) planned.makes.push_back(launches_that_make(formed.list, formed.plan, output.node));
  return planned;
}

}  // namespace einc
