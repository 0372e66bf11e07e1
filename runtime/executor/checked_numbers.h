// SPDX-License-Identifier: Apache-2.0
// The numbers that a run looks at before it changes params and states, with the launches that make them.
#pragma once
#include <cmath>
#include <vector>

#include "runtime/program/executable.h"

namespace einc {

// The first launch that takes the buffer; -1: none.
int64_t first_launch(const Executable& program, uint32_t buffer);

struct CheckedNumber {
  NonFinite means = NonFinite::loss;
  uint32_t buffer = 0;
  int64_t launch = -1;  // that makes it
};
std::vector<CheckedNumber> checked_numbers(const Executable& program);
// Of a state NaN stands for what must not be stored.
inline bool is_as_it_must_be(NonFinite means, double number) {
  return means == NonFinite::state ? !std::isnan(number) : std::isfinite(number);
}

// What is not as it must be of the numbers that launches before this one make; `read(buffer)` gives them.
template <class Read>
NonFinite fault_before(const Executable& program, size_t launch, const Read& read) {
  for (const CheckedNumber& check : checked_numbers(program))
    if (check.launch < static_cast<int64_t>(launch) && !is_as_it_must_be(check.means, read(check.buffer))) return check.means;
  return NonFinite::nothing;
}

}  // namespace einc
