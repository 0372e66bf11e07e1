#include "compiler/elaborate/size_limit.h"

#include "compiler/symbolic/term_count.h"

namespace einc {

size_t product_terms(std::span<const Axis> axes) {
  size_t terms = 1;
  for (const Axis& axis : axes) {
    if (terms > kMaxSizeTerms) break;
    terms *= term_count(axis.size);
  }
  return terms;
}

bool check_size_terms(Diagnostics& diagnostics, std::span<const Axis> axes, Span where) {
  if (product_terms(axes) <= kMaxSizeTerms) return true;
  diagnostics.report(Code::size_too_long, where, kMaxSizeTerms).hint("give sums of dims a name of their own: a free dim instead of `a + b`");
  return false;
}

}  // namespace einc
