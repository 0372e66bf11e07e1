// SPDX-License-Identifier: Apache-2.0
// FLOPs of the whole program by phase and class, as formulas: what the report prints and MFU is based on. What is constant
// counts nothing. (Tests hold these against counters in the interpreter's inner loops.)
#pragma once
#include <array>

#include "compiler/cost/op_cost.h"

namespace einc {

struct FlopTotals {
  // [phase][class]; `transcendental` is part of elementwise.
  std::array<std::array<Poly, kFlopClasses>, 3> by_class;
  std::array<Poly, 3> transcendental;

  const Poly& of(Phase phase, FlopClass kind) const { return by_class[static_cast<size_t>(phase)][static_cast<size_t>(kind)]; }
  Poly total(Phase phase) const;
  Poly step() const { return total(Phase::forward) + total(Phase::backward) + total(Phase::optimizer); }
};

FlopTotals count_flops(const Graph& graph, const std::vector<bool>& constant);
// The same from costs at hand.
FlopTotals count_flops(const Graph& graph, const std::vector<bool>& constant, const std::vector<FlopCost>& costs);

}  // namespace einc
