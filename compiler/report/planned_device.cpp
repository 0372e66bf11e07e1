// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/planned_device.h"

#include "compiler/lower/value_launches.h"
#include "runtime/base/check.h"

namespace einc {

PlannedDevice planned_device(const DeviceProgram& program, const FormedGraph& formed) {
  PlannedDevice planned;
  planned.launches = static_cast<uint32_t>(formed.list.kernels.size());
  for (const DeviceProgram::Meeting& c : program.collectives)
    planned.reads.push_back(launches_that_touch(formed.list, formed.plan, formed.place_of(c.place)));
  const std::vector<Output>& outputs = formed.bound.graph.outputs;
  EINC_CHECK(outputs.size() == program.values.size(), "a device of {} values is planned with {}", program.values.size(), outputs.size());
  for (const Output& output : outputs) planned.makes.push_back(launches_that_make(formed.list, formed.plan, output.node));
  return planned;
}

}  // namespace einc
