// SPDX-License-Identifier: Apache-2.0
// Where a launch stands in a program, for messages.
#pragma once
#include <fmt/format.h>

#include <string>

#include "runtime/program/executable.h"

namespace einc {

// ", in 'h.0.mlp up' (gpt2.ein:37:8)".
inline std::string place_of(const Launch& launch) {
  return launch.location.empty() ? fmt::format(", in '{}'", launch.label) : fmt::format(", in '{}' ({})", launch.label, launch.location);
}

}  // namespace einc
