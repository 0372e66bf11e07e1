// SPDX-License-Identifier: Apache-2.0
// A number of a report: a formula in the dims and, where every dim has a value, what it is.
#pragma once
#include <optional>

#include "compiler/symbolic/poly.h"

namespace einc {

struct Amount {
  Poly formula;
  std::optional<Rational> value;  // empty while a free dim it depends on has no value
  bool for_dims_only = false;     // a plan made for the dims in use: the formula is that number
  bool holds_here = false;        // for the dims in use: a contraction order, or what the ends of a loop do differently, lies behind it
};

// A number that was worked out for the dims in use: no formula stands behind it.
inline Amount amount_here(const Rational& value) { return {Poly(value), value, true, false}; }

}  // namespace einc
