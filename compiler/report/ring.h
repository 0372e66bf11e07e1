// SPDX-License-Identifier: Apache-2.0
// What a collective along one axis of a mesh takes on the links of a device row. Collectives along an axis: a ring within the group of the
// nearest link, and between groups by halves, in logarithmically many steps (NCCL's trees and its PAT algorithm); both send a ring's bytes.
// The last axis' devices are neighbours, so those of an axis are as far apart as the axes inside it are large. Where a group holds several
// of the axis' devices, as many rings run beside one another, each over a network card of its own (NCCL's channels): together they are as
// fast as the cards, or as the link between neighbours if that is slower.
#pragma once
#include <optional>

#include "compiler/cost/device.h"

namespace einc {

struct Ring {
  const DeviceLink* link = nullptr;  // that the slowest bytes cross
  double bandwidth = 0;              // bytes per second that each device sends and receives
  double latency_s = 0;              // of all steps
  double step_s = 0;                 // of one step, between neighbours along the axis
};

// Of an axis of `size` devices; `inside`: the product of the axes behind it. Nothing where no link is so wide.
std::optional<Ring> ring_on(const Device& device, double size, double inside);

}  // namespace einc
