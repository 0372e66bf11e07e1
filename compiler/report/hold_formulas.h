// SPDX-License-Identifier: Apache-2.0
// Formulas of unrolled loops are read off one number of iterations. Where the first or the last differs, or there are too few to tell, they
// need not hold for another number.
#pragma once
#include <functional>
#include <vector>

#include "compiler/report/report.h"

namespace einc {

// The final graph of the program with these values of some dims; nothing where they make it none.
using CompileWith = std::function<std::optional<Graph>(const Bindings& counts)>;

// Compares a report's formulas with those of its program at 1, 2 and 5 iterations of every loop that a dim counts. One that disagrees is
// replaced by one that agrees with all; where there is none it is marked as holding for the dims in use.
void hold_formulas(Report& report, const Graph& graph, const Bindings& given, const CompileWith& compile);

}  // namespace einc
