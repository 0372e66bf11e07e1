// SPDX-License-Identifier: Apache-2.0
// Losses that are small: what every backend must make of log_softmax and cross_entropy.
#pragma once
#include "tests/support/backend_programs.h"

namespace einc {

// Values of mpmath, to `tolerance` of each value.
void check_small_losses(const Backend& backend, std::span<const Scheduling> ways, double tolerance);
// A row of -inf, and rows that hold inf: the limits, -inf and inf.
void check_infinite_rows(const Backend& backend, std::span<const Scheduling> ways);
// Rows longer than a vector, targets without some axes of the logits, and several to a row: against the interpreter.
void check_targets(const Backend& backend, std::span<const Scheduling> ways);

}  // namespace einc
