// SPDX-License-Identifier: Apache-2.0
// `einc FILE --plan 64xh100-sxm`: the ways to split a program over that many devices.
#pragma once
#include <optional>

#include "compiler/driver/compile_request.h"
#include "compiler/driver/exit_status.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/report/text.h"

namespace einc {

ExitStatus show_plan(const CompileRequest& request, const PipelineOptions& options, TextStyle style);

}  // namespace einc
