// SPDX-License-Identifier: Apache-2.0
// The cost report of `einc FILE`: made for the device named, and written in the form asked for.
#pragma once
#include <optional>

#include "compiler/driver/compile_request.h"
#include "compiler/driver/exit_status.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/report/report.h"
#include "compiler/report/text.h"

namespace einc {

// nullopt after a message: what was asked for needs other options.
std::optional<Report> make_report(const CompileRequest& request, const Compilation& c, const PipelineOptions& options,
                                  const std::optional<Device>& device, Detail detail, const Partitioned* partitioned);

// To -o where it is given. Throws RuntimeFailure (resource).
void write_report(const CompileRequest& request, const Report& report, const Compilation& c, TextStyle style);

// --diff: beside the report of another file, or of the same one, with other dims.
ExitStatus show_difference(const CompileRequest& request, const Compilation& c, const PipelineOptions& options,
                           const std::optional<Device>& device, TextStyle style);

}  // namespace einc
