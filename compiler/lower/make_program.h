// SPDX-License-Identifier: Apache-2.0
// A kernel list with its buffer plan as a Executable: equal kernels become one function.
#pragma once
#include <string>
#include <vector>

#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/loop_plan.h"
#include "compiler/lower/tile_attention.h"
#include "compiler/lower/tile_contraction.h"
#include "runtime/program/executable.h"

namespace einc {

struct PlannedKernel {
  std::string name;  // symbol
  const Kernel* kernel;
  LoopPlan plan;
  std::optional<TiledContraction> tiles;  // instead of the plan's loops
  std::optional<TiledAttention> attention;

  // Equal for functions that are the same code.
  std::string text() const;
  int64_t domain() const { return attention ? attention->domain() : tiles ? tiles->domain() : plan.domain; }
};

struct LoweredProgram {
  Executable program;
  std::vector<PlannedKernel> functions;  // in the order of program.functions; kernels belong to the list
};

LoweredProgram make_program(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan, const Processor& processor);

}  // namespace einc
