// SPDX-License-Identifier: Apache-2.0
// The report as JSON (interface.md; schema in report.schema.json beside this file). Integers that a double cannot hold exactly are strings
// of digits.
#pragma once
#include <string>

#include "compiler/report/report.h"

namespace einc {

// `graph` is the one the report was built from.
std::string render_json(const Report& report, const Graph& graph);
// Lines "path,value" of every number and text of the JSON report: "flops.forward.total,1234", "schedule.0.count,12".
std::string render_csv(const Report& report, const Graph& graph);
std::string render_json(const Estimate& estimate);

}  // namespace einc
