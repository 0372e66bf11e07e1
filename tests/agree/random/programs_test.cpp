// SPDX-License-Identifier: Apache-2.0
// Random programs: machine code gives what the interpreter gives. ctest runs 750 in three parts that can run at once;
// EINC_RANDOM_PROGRAMS=FIRST:COUNT runs other seeds, scripts/random those of the day on all processors.
#include <doctest/doctest.h>

#include "tests/support/agree.h"
#include "tests/support/random_check.h"

using namespace einc;

TEST_CASE("random programs agree") {
  check_random_programs(1, 250, [](const std::string& text, uint64_t seed) { return disagreement(text, seed); });
}
