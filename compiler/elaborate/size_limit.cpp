// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/size_limit.h"

#include <fmt/format.h>

#include "compiler/elaborate/elaborate.h"

namespace einc {

bool check_size_terms(Diagnostics& diagnostics, std::span<const Axis> axes, Span where) {
  size_t terms = 1;
  for (const Axis& axis : axes) {
    terms *= axis.size.term_count();
    if (terms <= kMaxSizeTerms) continue;
    diagnostics.report(Code::size_too_complex, where, fmt::format("{} terms for the elements of a tensor", kMaxSizeTerms))
        .hint("give sums of dims a name of their own: a free dim instead of `a + b`");
    return false;
  }
  return true;
}

}  // namespace einc
