// SPDX-License-Identifier: Apache-2.0
// `--plan`: the ten fastest ways to train a program on so many devices, as scheduled, with why each is where it is and the lines that ask
// for it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/plan/schedule_way.h"
#include "compiler/report/document.h"

namespace einc {

struct AdvisedWay {
  ScheduledWay scheduled;
  std::optional<double> mfu;     // of all devices: FLOPs of forward and backward over their peak, in that time
  double share = 1;              // FLOPs of a device, over an equal share of the whole program's
  std::vector<std::string> why;  // sentences: work, sent, memory, what is slower than in the way before
};

struct MeshAdvice {
  std::string model, precision;
  int64_t devices = 0;
  Device device;
  Name batch;  // the dim that micro-batches divide; empty: none
  int64_t batch_size = 1;
  std::vector<AdvisedWay> ways;          // best first
  std::optional<EstimatedWay> smallest;  // where none fits
  size_t estimated = 0, fitting = 0;     // by formulas
  std::vector<std::string> whole;        // "vocab = 50257 stays whole: ...", of names that no mesh of so many devices divides
  std::vector<std::string> sizes;        // "batch = 8", of all names that could be split
};

// Plans of a scheduling.
using PlanFor = std::function<PlanStep(const Scheduling& scheduling)>;
// Plans of one way after another: those of graphs that are alike are made once.
WayPlans way_plans(const PlanFor& plan_for, const SamplePrograms& programs, const PlacedWays& placed);
// Of the sample of a program, with a plan as it is and one whose backward makes iterations again. `loop`: the one that stages may share.
PlacedWays placed_ways(const Graph& graph, const Bindings& dims, const PlanFor& plan_for, Name loop);

// `whole` has been compiled without a mesh, all of its dims have values, and it has a loss. `process`: as WayPlans has it.
// `shown`: ways, at most.
MeshAdvice advise(const Compilation& whole, const PipelineOptions& options, const DeclaredAxes& declared, const PlanFor& plan_for,
                  const Device& device, int64_t devices, decltype(WayPlans::process) process = {}, size_t shown = 10);

Document advice_document(const MeshAdvice& advice);
// "--mesh data=8 --shard \"batch=data\"", with the dim of a micro-batch, and the limit of what recomputes.
std::string options_of(const MeshAdvice& advice, const MeshWay& way);
std::string advice_json(const MeshAdvice& advice);

}  // namespace einc
