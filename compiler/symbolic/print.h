// Text of compound atoms; Poly::str is the public face. For compiler/symbolic only.
#pragma once
#include <string>
#include <vector>

#include "compiler/symbolic/poly_rep.h"

namespace einc {

// "floor((seq + 1)/2)", "max(a, b)", "(b + c)".
std::string compound_text(SizeAtomKind kind, const std::vector<Poly>& arguments);

}  // namespace einc
