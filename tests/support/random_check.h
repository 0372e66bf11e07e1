// SPDX-License-Identifier: Apache-2.0
// Runs many programs through a comparison: random ones, and those of tests/regress.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace einc {

using Disagrees = std::function<std::string(const std::string& text, uint64_t seed)>;  // "" or what is wrong, its kind before a colon

// `count` random programs from seed `first`, or those of EINC_RANDOM_PROGRAMS=FIRST:COUNT. One that disagrees is shrunk and told, with
// the variable's value that repeats it.
void check_random_programs(uint64_t first, uint64_t count, const Disagrees& disagrees);

// Programs that were once compiled wrongly.
void check_regress_programs(const Disagrees& disagrees);

}  // namespace einc
