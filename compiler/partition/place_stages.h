// SPDX-License-Identifier: Apache-2.0
// Which stage of a pipeline has which nodes of a graph: those of a loop's iterations by the mesh's `stages` line, equal shares in order;
// all else where what it works with is. What needs no weights (constants, masks, inputs, single states) is made wherever it is read.
#pragma once
#include <span>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

inline constexpr int kEveryStage = -1;
// Rounds of a step: what follows from weights alone, once; each microbatch; behind them, once, what is made of sums over microbatches. The
// last of those stores what params and states take, in all stages.
inline constexpr int kWeightsRound = 0, kMicrobatchRound = 1, kUpdateRound = 2;

struct StagePlaces {
  int stages = 1;
  std::vector<int> of;           // by node; kEveryStage: wherever it is read
  std::vector<bool> of_weights;  // by node (of_weights_alone)
  std::vector<bool> for_update;  // by node: nothing but the step's update reads it, and what may be done to the sum over microbatches
  // By node, of those that have a stage. What another stage makes in a round is read in a later one, but for what goes up and down.
  std::vector<int> round;
  int rounds = 2;
  std::vector<bool> of_data{};  // by node: it depends on inputs or draws
};

// By node: it follows from params and states alone, so that one serves all microbatches of a step.
std::vector<bool> of_weights_alone(const Graph& graph);

// The first iteration of a stage; of `stages`, the loop's end.
int64_t first_iteration(int64_t stage, int64_t stages, int64_t iterations);

// The dims of a microbatch: the examples are divided. Without stages, `given` as it is.
Bindings microbatch_dims(const Graph& graph, const Bindings& given);

// The first iterations of so many stages, in equal shares.
std::vector<int64_t> even_stages(int64_t stages, int64_t iterations);

// Those of the mesh's stages; `given` says how many.
std::vector<int64_t> stages_of(const Graph& graph, const Bindings& given);

// Of a loop that `loop` counts, by the first iteration of each stage. Works on a graph at any time after the elaboration, on a device's
// too.
StagePlaces place_stages(const Graph& graph, Name loop, std::span<const int64_t> firsts);

}  // namespace einc
