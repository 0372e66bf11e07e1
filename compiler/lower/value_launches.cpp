// SPDX-License-Identifier: Apache-2.0
// Values that continue one another in place are one.
#include "compiler/lower/value_launches.h"

namespace einc {
namespace {

template <class Wanted>
std::vector<uint32_t> launches_of(const KernelList& list, const BufferPlan& plan, NodeId value, Wanted wanted) {
  const NodeId holder = plan.holder(value);
  std::vector<uint32_t> launches;
  for (uint32_t l = 0; l < list.kernels.size(); ++l) {
    const GraphKernel& k = list.kernels[l];
    bool any = false;
    for (size_t b = 0; b < k.buffers.size() && !k.kernel->collective; ++b)
      any = any || (k.buffers[b].valid() && plan.holder(k.buffers[b]) == holder && wanted(k.kernel->buffers[b].access));
    if (any) launches.push_back(l);
  }
  return launches;
}

}  // namespace

std::vector<uint32_t> launches_that_touch(const KernelList& list, const BufferPlan& plan, NodeId value) {
  return launches_of(list, plan, value, [](BufferAccess) { return true; });
}

std::vector<uint32_t> launches_that_make(const KernelList& list, const BufferPlan& plan, NodeId value) {
  return launches_of(list, plan, value, [](BufferAccess access) { return access != BufferAccess::read; });
}

}  // namespace einc
