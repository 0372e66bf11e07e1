// SPDX-License-Identifier: Apache-2.0
// Where a value that is not finite comes from.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/executor/checked_numbers.h"

namespace einc {

// A run that is watched launch by launch.
struct WatchedRun {
  const Executable& program;
  // A buffer's elements, until the next call.
  std::function<const std::byte*(uint32_t buffer)> values;
  // Runs the program from the start, as long as `goes_on` says so after a launch.
  std::function<void(const std::function<bool(size_t launch)>& goes_on)> run;
  // Of buffers that do not lie row-major: their axes as they lie, outermost first.
  std::map<uint32_t, std::vector<int>> orders = {};
  // By launch: buffers of which it makes a part, and a later one the rest.
  std::map<uint32_t, std::vector<uint32_t>> unfinished = {};
};

// Runs the program launch by launch as far as a buffer that it makes and goes back from there over what is not finite. Values of -inf that
// a finite result follows from, as a mask's, are no fault. "'scores' of h.0.attn (model.ein:31:12) is the first tensor that holds nan, at
// [0, 3]"; empty when the buffer's numbers are finite.
std::string find_fault(const WatchedRun& run, uint32_t buffer);
// As far as the first of the program's checks of this meaning that finds something.
std::string find_fault(const WatchedRun& run, NonFinite what);

}  // namespace einc
