// SPDX-License-Identifier: Apache-2.0
// A thread that the system may refuse: that is the environment's fault, and says so.
#pragma once
#include <fmt/format.h>

#include <system_error>
#include <thread>
#include <utility>

#include "runtime/base/failure.h"

namespace einc {

// Throws RuntimeFailure (resource).
template <class Work>
std::thread start_thread(Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw RuntimeFailure(FailureKind::resource, fmt::format("cannot start a thread: {}", error.code().message()));
  }
}

}  // namespace einc
