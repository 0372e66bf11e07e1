// SPDX-License-Identifier: Apache-2.0
// A pipeline as a report speaks of it: the device of each stage with what it computes for one microbatch, and how often a step does that.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "compiler/partition/cut_stages.h"

namespace einc {

struct StagedDevice {
  Bindings given, dims;  // of a microbatch: those that are set, and all of them
  int64_t microbatches = 1;
  Localized whole;              // as if one device had all stages
  StagePlaces places;           // of its graph
  StagePrograms cut;            // with what they do between microbatches
  std::vector<Rational> flops;  // by stage, of a step on one device
  // The one with the most FLOPs: what a report says of one device, it says of that stage's.
  int shown = 0;

  int64_t stages() const { return places.stages; }
  // Whether a stage has the value of its own; what others send it is theirs.
  bool has(int stage, NodeId of_whole) const;
  // Inputs, params and states of a stage.
  Rational declared_bytes(int stage, const std::function<bool(const Node&)>& is_one) const;
  // How often a step does so. Gradients are added up first, and weights serve all microbatches. But those that the mesh spreads
  // are put together for each of them, and shared out by each.
  int64_t times_moved(const StageSend& send) const { return send.of_microbatch() ? microbatches : 1; }
  int64_t times_carried_out(NodeId collective) const { return places.round[collective.index] == kMicrobatchRound ? microbatches : 1; }
  Rational bytes_of(NodeId of_whole) const;
};

// The mesh has stages; `firsts`: the first iteration of each, where they are to be others than the mesh says. Nothing where a dim has no
// value, and where a device cannot carry its part out (partition/localize).
std::optional<StagedDevice> staged_device(const Partitioned& partitioned, const Bindings& given, std::span<const int64_t> firsts = {});

}  // namespace einc
