// SPDX-License-Identifier: Apache-2.0
// The step of a pipeline: each stage's device planned for one microbatch (mesh_step.h), and the stages in time with one another
// (partition/pipeline_timeline.h). A stage holds its values and what its launches work in once, and what it keeps of a forward for the
// backward as often as it has microbatches on their way.
#pragma once
#include "compiler/report/communication.h"
#include "compiler/report/mesh_step.h"

namespace einc {

// Fills the report's pipeline, and of the stage shown the step, its times and its rows' exposed times. `plan`: none: no memory, no times.
void tell_stages(MeshReport& report, const StagedDevice& staged, const PlanStep& plan, const ProcessBytes& process_bytes,
                 const Device* device);

}  // namespace einc
