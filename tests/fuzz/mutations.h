// SPDX-License-Identifier: Apache-2.0
// Miscompilations to plant in a lowered program: each is one wrong number, operand or order, as a slip in the compiler would
// leave it. What looks for wrong code must find them.
#pragma once
#include <memory>
#include <span>
#include <variant>

#include "compiler/pipeline/cuda_program.h"
#include "tests/support/run_cpu.h"

namespace einc {

// Counts the places where a mutation can be planted, and chooses one of them.
class Chooser {
 public:
  explicit Chooser(size_t wanted) : wanted_(wanted) {}
  bool here() { return seen_++ == wanted_; }
  size_t seen() const { return seen_; }

 private:
  size_t wanted_, seen_ = 0;
};

// Each changes the chosen place and says whether it did.
using KernelMutation = bool (*)(Kernel& kernel, Chooser& choose);
using PlanMutation = bool (*)(FormedGraph& formed, Chooser& choose);
using ProgramMutation = bool (*)(LoweredProgram& lowered, Chooser& choose);

struct Mutation {
  const char* name;
  std::variant<KernelMutation, PlanMutation, ProgramMutation> plant;
};

std::span<const Mutation> mutations();

// The graph lowered with the mutation at one of its places, by `choice`; null where it has none.
std::unique_ptr<LoweredGraph> lower_mutated(const Graph& graph, RunMode mode, const Mutation& mutation, uint64_t choice);

// What can go wrong in a GPU's kernels alone, and the graph compiled for one with such a mutation.
std::span<const Mutation> gpu_mutations();
std::unique_ptr<CudaProgramText> mutated_for_cuda(const Graph& graph, const Mutation& mutation, uint64_t choice);

}  // namespace einc
