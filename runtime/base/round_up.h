// SPDX-License-Identifier: Apache-2.0
// Division of sizes that rounds up; both numbers are above 0 (or a is 0).
#pragma once
#include <cstdint>

namespace einc {

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

}  // namespace einc
