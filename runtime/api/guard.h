// SPDX-License-Identifier: Apache-2.0
// The edge of the library: whatever is thrown inside leaves as Error.
#pragma once
#include <einc/error.h>

#include <new>

#include "runtime/base/check.h"
#include "runtime/base/failure.h"

namespace einc {

[[noreturn]] void rethrow_as_error();

template <class Function>
auto guarded(Function&& function) {
  try {
    return function();
  } catch (...) {
    rethrow_as_error();
  }
}

}  // namespace einc
