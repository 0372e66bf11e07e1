// A bound on formulas: a product of sums has as many terms as the product of their numbers, so thirty axes of size a + b
// would have a billion. Checked before sizes are multiplied.
#pragma once
#include <span>

#include "compiler/elaborate/context.h"

namespace einc {

inline constexpr size_t kMaxSizeTerms = 256;  // of the number of elements, written out in the dims

// Terms of the product, at most: stops counting above the limit.
size_t product_terms(std::span<const Axis> axes);
// Reports a product of more than kMaxSizeTerms terms.
bool check_size_terms(Diagnostics& diagnostics, std::span<const Axis> axes, Span where);

}  // namespace einc
