// SPDX-License-Identifier: Apache-2.0
// What it takes to run a kernel that does next to nothing: of a program of small tensors that is most of the time.
#pragma once

namespace einc {

// Seconds of a launch that one thread does alone: its arguments and the call. The best of several rounds.
double small_launch_time();

}  // namespace einc
