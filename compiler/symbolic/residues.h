// SPDX-License-Identifier: Apache-2.0
// Divisibility that no dims can bring about: 3 divides 6*n + 1 for no n. Dims are integers, so a polynomial with integer
// coefficients takes, modulo m, only the values that it takes at the residues of its dims. Sound, not complete.
#pragma once
#include "compiler/symbolic/poly.h"

namespace einc {

// True when left / right is an integer for no integer values of the dims.
bool never_divides(const Poly& left, const Poly& right);

}  // namespace einc
