// SPDX-License-Identifier: Apache-2.0
// Comparing sizes that are only known as formulas, for all dims >= 1 at once: substitute d = 1 + d', clear denominators,
// and look at the signs of all coefficients. Sound, not complete: `unknown` says nothing.
#pragma once
#include "compiler/symbolic/poly.h"

namespace einc {

enum class Ordering : uint8_t { equal, less, less_equal, greater, greater_equal, unknown };

Ordering compare(const Poly& a, const Poly& b);
bool provably_positive(const Poly& p);
bool provably_at_least(const Poly& p, const Poly& bound);
bool provably_equal(const Poly& a, const Poly& b);

}  // namespace einc
