// SPDX-License-Identifier: Apache-2.0
// A bound on formulas: a product of sums has as many terms as the product of their numbers, so thirty axes of size a + b
// would have a billion. Checked before sizes are multiplied; kMaxSizeTerms (elaborate.h) is the limit.
#pragma once
#include <span>

#include "compiler/elaborate/context.h"

namespace einc {

// Reports a product of more than kMaxSizeTerms terms.
bool check_size_terms(Diagnostics& diagnostics, std::span<const Axis> axes, Span where);

}  // namespace einc
