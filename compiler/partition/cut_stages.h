// SPDX-License-Identifier: Apache-2.0
// From the graph of one device, which has all iterations, to the graph of a device of each stage of a pipeline. What another stage makes is
// an input; what others read is an output. Each is a device's graph like any other's, so that all that plans, counts and interprets those
// does so with stages, too.
#pragma once
#include <vector>

#include "compiler/partition/localize.h"
#include "compiler/partition/place_stages.h"

namespace einc {

// A value that the devices of one stage send to their neighbours along the mesh axis of the stages. Ids are of the whole device's graph.
struct StageSend {
  NodeId value;
  int from = 0, to = 0;
};

struct StageProgram {
  Localized local;              // collectives: those of this stage
  std::vector<NodeId> at;       // by node of the whole device's graph; invalid: it is not here
  std::vector<size_t> numbers;  // of its collectives, in the whole's list
};

struct StagePrograms {
  std::vector<StageProgram> stages;
  std::vector<StageSend> sends;  // in the order of the values
};

// `places`: of local.graph.
StagePrograms cut_stages(const Localized& local, const StagePlaces& places);

}  // namespace einc
