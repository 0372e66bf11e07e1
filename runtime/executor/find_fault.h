// Where a value that is not finite comes from.
#pragma once
#include <string>

#include "runtime/executor/executor.h"

namespace einc {

// Runs the program launch by launch as far as a buffer that it makes and goes back from there over what is not finite. Values of -inf that
// a finite result follows from, as a mask's, are no fault. "'scores' of h.0.attn (model.ein:31:12) is the first tensor that holds nan, at
// [0, 3]"; empty when the buffer's numbers are finite.
std::string find_fault(Executor& executor, uint32_t buffer, uint64_t seed, uint64_t step);

}  // namespace einc
