// SPDX-License-Identifier: Apache-2.0
// A pipeline as a report speaks of it: the device of each stage with what it computes for one microbatch, and how often a step does that.
#pragma once
#include <optional>

#include "compiler/partition/cut_stages.h"

namespace einc {

struct StagedDevice {
  Bindings given, dims;  // of a microbatch: those that are set, and all of them
  int64_t microbatches = 1;
  Localized whole;     // as if one device had all stages
  StagePlaces places;  // of its graph
  StagePrograms cut;
  // The one with the most FLOPs: what a report says of one device, it says of that stage's.
  int shown = 0;

  int64_t stages() const { return places.stages; }
  // Whether a step moves a value once: gradients are added up first, and weights serve all microbatches, but where the mesh spreads them.
  bool moves_once(NodeId of_whole) const;
  int64_t times_moved(NodeId of_whole) const { return moves_once(of_whole) ? 1 : microbatches; }
  Rational bytes_of(NodeId of_whole) const;
  // FLOPs of a step on one device.
  Rational flops(int stage) const;
};

// The mesh has stages. Nothing where a dim has no value, and where a device cannot carry its part out (partition/localize).
std::optional<StagedDevice> staged_device(const Partitioned& partitioned, const Bindings& given);

}  // namespace einc
