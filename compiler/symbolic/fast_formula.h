// SPDX-License-Identifier: Apache-2.0
// A formula in a few names, all others with their values: prepared once, evaluated in doubles many times. A search over sizes asks for
// millions of values, where exact ones cost a hundred times as much.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "compiler/symbolic/poly.h"

namespace einc {

class FastFormula {
 public:
  static constexpr size_t kMaxVariables = 4;

  FastFormula() = default;  // 0
  // Every other name of the formula has a value in `fixed`.
  FastFormula(const Poly& formula, std::span<const Name> variables, const Bindings& fixed);
  // Values of the variables, in their order: whole numbers from 1 on.
  double operator()(std::span<const double> values) const;

 private:
  struct Term {
    double coefficient = 0;
    std::array<int, kMaxVariables> exponents{};
  };
  std::vector<Term> terms_;
  // A floor or maximum of variables is evaluated as it is written.
  bool as_written_ = false;
  Poly formula_;
  std::vector<Name> variables_;
};

}  // namespace einc
