// SPDX-License-Identifier: Apache-2.0
// Two reports beside each other.
#pragma once
#include "compiler/report/document.h"
#include "compiler/report/report.h"

namespace einc {

// The numbers of the JSON report, by its paths, that differ: of the program, of each module by its path, of memory, time and the rest, but
// not of single ops and launches. `graph` is the one that its report was built from.
Document compare_reports(const Report& report, const Graph& graph, const Report& other, const Graph& other_graph);

}  // namespace einc
