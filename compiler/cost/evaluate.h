// SPDX-License-Identifier: Apache-2.0
// Values of many formulas at one binding of the dims. A graph has few distinct formulas, so each is evaluated once.
#pragma once
#include <optional>
#include <unordered_map>

#include "compiler/symbolic/poly.h"

namespace einc {

class Evaluator {
 public:
  explicit Evaluator(Bindings dims) : dims_(std::move(dims)) {}
  const Bindings& dims() const { return dims_; }
  // Empty when a dim has no value.
  const std::optional<Rational>& operator()(const Poly& formula) {
    const auto found = known_.find(formula);
    if (found != known_.end()) return found->second;
    return known_.emplace(formula, formula.evaluate(dims_)).first->second;
  }

 private:
  Bindings dims_;
  std::unordered_map<Poly, std::optional<Rational>> known_;
};

}  // namespace einc
