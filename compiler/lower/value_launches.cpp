// SPDX-License-Identifier: Apache-2.0
// Values that continue one another in place are one: the last launch that writes any of them has made it.
#include "compiler/lower/value_launches.h"

#include <algorithm>

namespace einc {

ReadingLaunches launches_that_read(const KernelList& list, const BufferPlan& plan, NodeId source) {
  const auto count = static_cast<uint32_t>(list.kernels.size());
  const NodeId holder = plan.holder(source);
  const auto reads = [&](uint32_t l) {
    return std::ranges::any_of(list.kernels[l].buffers, [&](NodeId id) { return id.valid() && plan.holder(id) == holder; });
  };
  ReadingLaunches reading{count > 0 ? count - 1 : 0, count > 0 ? count - 1 : 0};
  for (uint32_t l = count; l-- > 0;)
    if (reads(l)) reading.first = l;
  while (reading.last > reading.first && !reads(reading.last)) --reading.last;
  return reading;
}

uint32_t launches_that_make(const KernelList& list, const BufferPlan& plan, NodeId value) {
  const NodeId holder = plan.holder(value);
  uint32_t made = 0;
  for (uint32_t l = 0; l < list.kernels.size(); ++l) {
    const GraphKernel& k = list.kernels[l];
    for (size_t b = 0; b < k.buffers.size(); ++b)
      if (k.buffers[b].valid() && plan.holder(k.buffers[b]) == holder && k.kernel->buffers[b].access != BufferAccess::read) made = l + 1;
  }
  return made;
}

}  // namespace einc
