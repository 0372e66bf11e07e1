// SPDX-License-Identifier: Apache-2.0
// The static schedule of one device: in which order it computes its stages, starts collectives and waits for them. A collective starts as
// soon as what it reads is made, and is waited for where its result is first read. A gather starts later, since the whole that it makes is
// larger than the parts: when the layer before the one that reads it begins, so that no more than two layers are whole at once.
#pragma once
#include <span>
#include <vector>

#include "compiler/partition/stages.h"
#include "runtime/base/collective.h"

namespace einc {

// A stage as it was planned.
struct PlannedStage {
  struct Reading {
    uint32_t first = 0, last = 0;  // launches that read it
  };
  uint32_t launches = 0;
  std::vector<Reading> reads;   // by DeviceStage::reads
  std::vector<uint32_t> makes;  // by DeviceStage::makes: so many launches make it
};

struct DeviceSchedule {
  std::vector<NodeId> collectives;  // in the order of their starts: those that a step's number means
  std::vector<DeviceStep> steps;
};

// `graph` is what was cut into the stages. A value is taken out of its stage behind the steps that make it.
DeviceSchedule schedule_device(const Graph& graph, const DeviceStages& cut, std::span<const PlannedStage> planned);

}  // namespace einc
