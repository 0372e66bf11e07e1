#include "compiler/fuse/index_split.h"

namespace einc {

std::optional<DividedIndex> divide(const Affine& index, int64_t divisor, const std::vector<LoopAxis>& axes) {
  if (index.constant < 0) return std::nullopt;
  DividedIndex parts;
  parts.quotient.constant = index.constant / divisor;
  parts.remainder.constant = index.constant % divisor;
  int64_t largest = parts.remainder.constant;
  for (const Affine::Term& t : index.terms) {
    if (t.coefficient % divisor == 0) {
      parts.quotient.terms.push_back({t.axis, t.coefficient / divisor});
      continue;
    }
    if (t.coefficient < 0) return std::nullopt;
    parts.remainder.terms.push_back(t);
    largest += t.coefficient * (axes[t.axis].extent - 1);
  }
  if (largest >= divisor) return std::nullopt;
  return parts;
}

}  // namespace einc
