// SPDX-License-Identifier: Apache-2.0
// A formula as people write it: terms that belong to a loop stand together, `layers*(...)`, and what all terms of a sum have
// in common stands before it, `batch*seq*(...)`. The value is the same; parse_poly reads it back.
#pragma once
#include <span>
#include <string>

#include "compiler/symbolic/poly.h"

namespace einc {

// `loops`: names of loops' trip counts, outermost first.
std::string factored(const Poly& formula, std::span<const Name> loops);

}  // namespace einc
