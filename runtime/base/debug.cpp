// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/debug.h"

#include <cstdlib>

namespace einc {

int debug_level() {
#ifdef NDEBUG
  constexpr int kUnset = 0;
#else
  constexpr int kUnset = 1;
#endif
  const char* value = std::getenv("EINC_DEBUG");
  return value && *value ? std::atoi(value) : kUnset;
}

}  // namespace einc
