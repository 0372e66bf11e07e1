// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/ring.h"

#include <algorithm>
#include <cmath>

namespace einc {

std::optional<Ring> ring_on(const Device& device, double size, double inside) {
  const DeviceLink* near = nullptr;
  for (const DeviceLink& link : device.links) {
    if (size * inside <= static_cast<double>(link.devices)) {
      const double beside = near ? std::max(1.0, std::floor(static_cast<double>(near->devices) / inside)) : 1;
      if (!near) return Ring{&link, link.bandwidth, (size - 1) * link.latency_s, link.latency_s};
      const double steps = std::ceil(std::log2(std::ceil(size / beside)));
      return Ring{&link, beside > 1 ? std::min(beside * link.bandwidth, near->bandwidth) : link.bandwidth,
                  steps * link.latency_s + (beside - 1) * near->latency_s, link.latency_s};
    }
    if (!near) near = &link;
  }
  return std::nullopt;
}

}  // namespace einc
