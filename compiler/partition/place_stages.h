// SPDX-License-Identifier: Apache-2.0
// Which stage of a pipeline has which nodes of a graph: those of a loop's iterations by the mesh's `stages` line, equal shares in order;
// all else where what it works with is. What needs no weights (constants, masks, inputs, single states) is made wherever it is read.
#pragma once
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

inline constexpr int kEveryStage = -1;

struct StagePlaces {
  int stages = 1;
  std::vector<int> of;           // by node; kEveryStage: wherever it is read
  std::vector<bool> of_weights;  // by node (of_weights_alone)
  std::vector<bool> for_update;  // by node: nothing but the step's update reads it, and what may be done to the sum over microbatches
};

// By node: it follows from params and states alone, so that one serves all microbatches of a step.
std::vector<bool> of_weights_alone(const Graph& graph);

// The first iteration of a stage; of `stages`, the loop's end.
int64_t first_iteration(int64_t stage, int64_t stages, int64_t iterations);

// The dims of a microbatch: the examples are divided. Without stages, `given` as it is.
Bindings microbatch_dims(const Graph& graph, const Bindings& given);

// The mesh has stages, and `given` says how many. Works on a graph at any time after the elaboration, on a device's too.
StagePlaces place_stages(const Graph& graph, const Bindings& given);

}  // namespace einc
