// SPDX-License-Identifier: Apache-2.0
// Programs that were once compiled wrongly, compiled in every way.
#include <doctest/doctest.h>

#include "tests/support/agree.h"
#include "tests/support/random_check.h"

using namespace einc;

TEST_CASE("programs once compiled wrongly agree") {
  check_regress_programs([](const std::string& text, uint64_t seed) { return disagreement(text, seed, all_ways()); });
}
