// SPDX-License-Identifier: Apache-2.0
// Formulas of unrolled loops are read off one number of iterations. Where the first or the last differs, or there are too few to tell, they
// need not hold for another number.
#pragma once
#include <vector>

#include "compiler/report/report.h"

namespace einc {

// The report of a program at other numbers of iterations.
struct SampledReport {
  Bindings counts;
  Report report;
};

// Those at 1, 2 and 5 iterations of every loop that a dim counts.
std::vector<SampledReport> sample_reports(const Graph& graph, const Bindings& given, const CompileWith& compile);

// Compares a report's formulas with those. One that disagrees is replaced by one that agrees with all; where there is none it is marked as
// holding for the dims in use.
void hold_formulas(Report& report, const Graph& graph, const Bindings& given, const std::vector<SampledReport>& samples);

}  // namespace einc
