// SPDX-License-Identifier: Apache-2.0
// The least time a node can take on a device: its FLOPs at the peak of its number format, its bytes at the memory's
// bandwidth, whichever is longer.
#pragma once
#include <optional>

#include "compiler/cost/device.h"
#include "compiler/cost/op_cost.h"

namespace einc {

enum class Bound : uint8_t { none, compute, memory };

struct Roofline {
  double time_s = 0;
  Bound bound = Bound::none;  // none: nothing to do
};

// Nothing when the device has no peak for the node's number format.
std::optional<Roofline> roofline(const Device& device, FlopClass kind, DType dtype, double flops, double bytes);

// The number format whose peak limits a node: that of its operands for a contraction, its own otherwise.
DType working_dtype(const Graph& graph, NodeId id);

}  // namespace einc
