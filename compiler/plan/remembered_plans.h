// SPDX-License-Identifier: Apache-2.0
// Plans of graphs that are alike are made once: some ways to split a program give a device the same to compute.
#pragma once
#include <vector>

#include "compiler/fuse/planned_step.h"

namespace einc {

// The same plans, which no number of bytes limits, kept as long as the function is, which several threads may call. `counts`: dims whose
// values change nothing in a graph, numbers of iterations.
PlanStep remembered(const PlanStep& plan, const std::vector<Name>& counts);

}  // namespace einc
