// SPDX-License-Identifier: Apache-2.0
// A part of a program whose devices along a mesh axis have stages of a loop, as plain data. One of a stage's rounds is run for each
// microbatch, up to what comes back for it from the stages behind (its forward), and from there (its backward); the others once, in step
// with those of all stages. Devices of neighbouring stages hand values to one another by their coordinates along the other axes.
#pragma once
#include "runtime/mesh/mesh_plan.h"

namespace einc {

// A value of a round's plan.
struct StageValue {
  int stage = 0, round = 0;
  uint32_t value = 0;
};

struct StageTransfer {
  StageValue from, to;
};

// A value that lies where an earlier round of the stage has it.
struct EarlierPlace {
  uint32_t here = 0;
  int round = 0;
  uint32_t there = 0;
};

struct StageRound {
  MeshPlan plan;
  std::vector<EarlierPlace> earlier;
};

// An input of the microbatches' round, cut out of the whole one for each microbatch.
struct MicrobatchInput {
  uint32_t whole = 0, value = 0;  // of the whole plan, and of the round's
  PartLayout layout;              // of a microbatch
  std::vector<int64_t> shape;     // of a microbatch
  std::vector<int64_t> of_all;    // of all of them together: one axis is longer, or none, where all take the same
};

// Rounds: what follows from weights alone, each microbatch, and what is made of sums over them.
inline constexpr int kRoundOfMicrobatches = 1;

struct PipelineStage {
  std::vector<StageRound> rounds;
  std::vector<MicrobatchInput> inputs;
  // Of the microbatches' round: sums that its launches, or waits for its collectives, add a term to in each; and those of them that become
  // means at the end. Of the others the largest term is kept.
  std::vector<uint32_t> sums, means;
  size_t backward = 0;  // of the steps for a microbatch: where it begins
  int64_t kept = 0;     // of what its launches work in, from the beginning: what a backward may read of its forward
};

struct PipelinePlan {
  int axis = 0;  // of the mesh; the first
  int64_t microbatches = 1;
  std::vector<PipelineStage> stages;
  std::vector<StageTransfer> up, down;             // behind each forward, and behind each backward
  std::vector<std::vector<StageTransfer>> behind;  // by round: when it is over
  std::vector<StageValue> values;                  // by those of the whole plan
  StageValue loss;                                 // of a microbatch
};

// Of a round's plan: what is added to a sum over microbatches when the collective that makes it is over.
inline bool is_microbatch_sum(const MeshCollective& c) { return c.kind == CollectiveKind::shift && c.by == 0; }

}  // namespace einc
