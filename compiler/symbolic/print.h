// SPDX-License-Identifier: Apache-2.0
// Text of sizes besides Poly::str, the public face. For compiler/symbolic only.
#pragma once
#include <string>
#include <vector>

#include "compiler/symbolic/poly_rep.h"

namespace einc {

// "floor((seq + 1)/2)", "max(a, b)", "(b + c)".
std::string compound_text(SizeAtomKind kind, const std::vector<Poly>& arguments);
// "h/2", "(a + b)/c" rather than "1/2*h", where that reads back as the same terms.
std::string fraction_text(const Poly& x);

}  // namespace einc
