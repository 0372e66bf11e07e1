// SPDX-License-Identifier: Apache-2.0
// Where the values of a program's graph are when a step of it is planned for one device: in memory or within a kernel, kept for the
// backward, or in the way when most memory is in use. Devices of a mesh are taken to place their parts of the values so.
#pragma once
#include <vector>

#include "compiler/fuse/planned_step.h"

namespace einc {

struct PlacedValues {
  // By node of the graph given.
  std::vector<bool> in_memory;
  std::vector<bool> kept;    // made by the forward, read by the backward
  std::vector<bool> beside;  // others in the arena at its fullest
  std::vector<bool> again;   // of the forward, made again in the backward
  // The plan's bytes over those of the nodes so marked: a plan also holds what no node of the graph given is.
  double kept_scale = 1, beside_scale = 1;
};

PlacedValues placed_values(const Graph& graph, const PlannedStep& step);

}  // namespace einc
