#include "compiler/symbolic/term_count.h"

#include "compiler/symbolic/poly_rep.h"

namespace einc {

size_t term_count(const Poly& poly) { return TermList(poly).size(); }

}  // namespace einc
