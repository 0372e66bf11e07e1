// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/index_split.h"

#include <algorithm>

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

bool runs_once_over(const Subscript& index, int64_t count, const std::vector<LoopAxis>& axes) {
  if (!index.dynamic.empty() || index.affine.constant != 0) return false;
  SmallVector<Affine::Term, 6> terms(index.affine.terms);
  std::sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.coefficient < b.coefficient; });
  int64_t next = 1;
  for (const Affine::Term& t : terms) {
    if (t.coefficient != next) return false;
    next *= axes[t.axis].extent;
  }
  return next == count;
}

}  // namespace einc
