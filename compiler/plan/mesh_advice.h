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
  std::optional<double> mfu;
  std::string why;
};

struct MeshAdvice {
  std::string model, precision;
  int64_t devices = 0;
  Device device;
  Name batch;              // the dim that micro-batches divide; empty: none
  int64_t batch_size = 1;
  std::vector<AdvisedWay> ways;  // best first
  std::optional<EstimatedWay> smallest;
  size_t estimated = 0, fitting = 0;  // by formulas
  std::vector<SplitName> names;
  Bindings dims;
};

// `whole` has been compiled without a mesh, all of its dims have values, and it has a loss.
MeshAdvice advise(const Compilation& whole, const PipelineOptions& options, const DeclaredAxes& declared, const PlanStep& plan,
                  const Device& device, int64_t devices);

Document advice_document(const MeshAdvice& advice, const std::string& file);
std::string advice_json(const MeshAdvice& advice);

}  // namespace einc
