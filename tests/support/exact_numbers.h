// SPDX-License-Identifier: Apache-2.0
// What must not lose digits on any backend: integers beyond 2^53, and sums along a long line.
#pragma once
#include "tests/support/backend_programs.h"

namespace einc {

void check_wide_integers(const Backend& backend, std::span<const Scheduling> ways);
void check_running_sums(const Backend& backend, std::span<const Scheduling> ways);

}  // namespace einc
