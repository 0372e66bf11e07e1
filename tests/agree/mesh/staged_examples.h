// SPDX-License-Identifier: Apache-2.0
// Examples whose layers are stages, on meshes of several axes.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/mesh/pipeline_plan.h"
#include "tests/support/mesh_examples.h"

namespace einc {

inline constexpr const char* kStagedGpt = "batch=8 seq=6 vocab=16 layers=6 heads=4 head=3";
inline const MeshExample kStaged[] = {
    {"gpt2.ein", kStagedGpt, "stage=3", "layers=stage(microbatches=4)"},
    {"gpt2.ein", kStagedGpt, "stage=6", "layers=stage(microbatches=2)"},
    {"gpt2.ein", kStagedGpt, "stage=2", "layers=stage(microbatches=1)"},
    {"gpt2.ein", kStagedGpt, "stage=1", "layers=stage(microbatches=2)"},
    {"gpt2.ein", kStagedGpt, "stage=2,data=2", "layers=stage(microbatches=4); batch=data"},
    {"gpt2.ein", kStagedGpt, "stage=2,data=4", "layers=stage(microbatches=2); batch=data"},
    {"gpt2.ein", kStagedGpt, "stage=2,data=2", "layers=stage(microbatches=2); batch=data; states=data"},
    {"gpt2.ein", kStagedGpt, "stage=3,data=2", "layers=stage(microbatches=2); batch=data; gradients=data"},
    {"gpt2.ein", kStagedGpt, "stage=2,data=2", "layers=stage(microbatches=2); batch=data; params=data"},
    {"gpt2.ein", kStagedGpt, "stage=2,model=2", "layers=stage(microbatches=2); heads,hidden=model"},
    {"gpt2.ein", kStagedGpt, "stage=2,context=2", "layers=stage(microbatches=2); seq=context"},
    {"llama.ein", "batch=4 seq=6 vocab=16 layers=6 embed=16 heads=4 kv_heads=2 ffn=8", "stage=3", "layers=stage(microbatches=4)", 0.05},
    {"vit.ein", "batch=4 rows=2 cols=2 side=2 classes=3 layers=6 heads=2 head=2", "stage=2", "layers=stage(microbatches=2)"},
    {"nanogpt.ein", "batch=4 seq=6 vocab=16 layers=6 heads=2 head=2", "stage=3", "layers=stage(microbatches=2)"},
    {"deep_linear.ein", "batch=8 width=3 layers=8", "stage=8", "layers=stage(microbatches=8)"},
    {"deep_linear.ein", "batch=6 width=3 layers=8", "stage=8", "layers=stage(microbatches=3)"},
    {"deep_linear.ein", "batch=6 width=3 layers=8", "stage=4", "layers=stage(microbatches=6)"}};

inline std::string text_of(const MeshExample& e) { return fmt::format("{} on {}, {}", e.file, e.mesh, e.shard); }

// Faults of a plan of three stages, by what they are.
using PipelineFault = std::function<void(PipelinePlan&)>;
inline std::vector<std::pair<const char*, PipelineFault>> pipeline_faults() {
  return {{"an activation is not sent", [](PipelinePlan& p) { p.up.erase(p.up.begin()); }},
          {"a gradient is not sent", [](PipelinePlan& p) { p.down.pop_back(); }},
          {"a weight of two stages is not sent", [](PipelinePlan& p) { p.behind[0].clear(); }},
          {"its gradient is not sent", [](PipelinePlan& p) { p.behind[kRoundOfMicrobatches].clear(); }},
          {"a backward begins with its forward",
           [](PipelinePlan& p) { p.stages[0].backward = p.stages[0].rounds[kRoundOfMicrobatches].plan.steps.size(); }},
          {"all microbatches are the first",
           [](PipelinePlan& p) {
             for (PipelineStage& s : p.stages)
               for (MicrobatchInput& input : s.inputs) input.of_all = input.shape;
           }},
          {"one microbatch is left out", [](PipelinePlan& p) { p.microbatches -= 1; }},
          {"a sum is taken for the mean", [](PipelinePlan& p) { p.stages[1].means.clear(); }}};
}

}  // namespace einc
