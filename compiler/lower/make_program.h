// SPDX-License-Identifier: Apache-2.0
// A kernel list with its plans as an Executable: equal kernels become one function.
#pragma once
#include <string>
#include <vector>

#include "compiler/lower/processor_plan.h"
#include "runtime/program/executable.h"

namespace einc {

struct PlannedKernel : ProcessorPlan {
  PlannedKernel(std::string symbol, const Kernel& made, const ProcessorPlan& how)
      : ProcessorPlan(how), name(std::move(symbol)), kernel(&made) {}
  std::string name;  // symbol
  const Kernel* kernel;

  // Equal for functions that are the same code.
  std::string text() const;
};

struct LoweredProgram {
  Executable program;
  std::vector<PlannedKernel> functions;  // in the order of program.functions; kernels belong to the list
};

LoweredProgram make_program(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan);

}  // namespace einc
