// SPDX-License-Identifier: Apache-2.0
// Runs a function on a thread of its own with a stack of known size. Recursion over a program's text is bounded (256
// levels), but how much stack the caller has left is not ours to choose: `ulimit -s` and embedding threads may give little.
#pragma once
#include <functional>

namespace einc {

// Calls the function and waits for it; what it throws is thrown here. If no thread can be had, it is called directly.
void run_on_big_stack(const std::function<void()>& function);

}  // namespace einc
