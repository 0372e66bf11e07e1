// SPDX-License-Identifier: Apache-2.0
// When a launch ran.
#pragma once
#include <cstdint>

namespace einc {

// One thread's part of one launch: seconds since the run began. A GPU counts as one thread.
struct LaunchSpan {
  uint32_t launch = 0;
  int thread = 0;
  double begin = 0, end = 0;
};

}  // namespace einc
