// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/value_launches.h"

namespace einc {

ValueLaunches::ValueLaunches(const KernelList& list, const BufferPlan& plan)
    : plan_(plan), touch_(plan.buffers.size()), make_(plan.buffers.size()) {
  const auto add = [](std::vector<uint32_t>& launches, uint32_t l) {
    if (launches.empty() || launches.back() != l) launches.push_back(l);
  };
  for (uint32_t l = 0; l < list.kernels.size(); ++l) {
    const GraphKernel& k = list.kernels[l];
    for (size_t b = 0; b < k.buffers.size() && !k.kernel->collective; ++b) {
      if (!k.buffers[b].valid()) continue;
      const uint32_t holder = plan.holder(k.buffers[b]).index;
      add(touch_[holder], l);
      if (k.kernel->buffers[b].access != BufferAccess::read) add(make_[holder], l);
    }
  }
}

}  // namespace einc
