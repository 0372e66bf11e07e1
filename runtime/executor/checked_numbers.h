// Numbers of a run that must be finite for params to change: its loss, and the norms of gradients that are clipped.
#pragma once
#include <vector>

#include "runtime/executor/session.h"
#include "runtime/program/executable.h"

namespace einc {

// The first launch that takes the buffer; -1: none.
int64_t first_launch(const Executable& program, uint32_t buffer);

struct CheckedNumber {
  NonFinite means = NonFinite::loss;
  uint32_t buffer = 0;
  int64_t launch = -1;  // that makes it
};
// Of a part of a program; the loss, where there is one, is the first.
std::vector<CheckedNumber> checked_numbers(const ProgramInfo& info, Part part, const Executable& program);

}  // namespace einc
