// SPDX-License-Identifier: Apache-2.0
// A report in the forms that it is handed out in, and the plan that it speaks of. Shared by the library and the command.
#pragma once
#include <einc/einc.h>

#include <optional>

#include "compiler/cost/device.h"
#include "compiler/fuse/schedule_passes.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/report/report.h"
#include "compiler/report/text.h"

namespace einc {

// Without a device, or for one that is a processor: this machine's processor, with `threads` or else those of the device, or else one; else
// the GPU, which need not be here.
PlanStep plan_for_device(const Scheduling& scheduling, const std::optional<Device>& device, std::optional<int> threads = std::nullopt);

// `compilation` is the one that the report was built from. HTML shows its sources, imported and bundled files too.
std::string render_report(ReportForm form, const Report& report, const Compilation& compilation, TextStyle style = {});

}  // namespace einc
