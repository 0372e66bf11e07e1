// SPDX-License-Identifier: Apache-2.0
// Sets that share blocks, against sets of their own: what changes one leaves the others as they are.
#include "compiler/fuse/shared_bits.h"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <vector>

using namespace einc;

TEST_CASE("sets that share blocks hold what was put into each") {
  constexpr uint32_t kSets = 12, kNumbers = 2500;  // over several blocks
  std::mt19937 draw(11);
  SharedBits bits;
  std::vector<SharedBits::Set> sets(kSets);
  std::vector<std::set<uint32_t>> expected(kSets);
  int merges = 0, old_news = 0;
  for (int step = 0; step < 4000; ++step) {
    const uint32_t s = draw() % kSets, other = draw() % kSets, number = draw() % kNumbers;
    const size_t before = expected[s].size();
    switch (draw() % 8) {
      case 0:
        sets[s] = {};
        expected[s].clear();
        if (number % 2 == 0) break;
        bits.copy(sets[s], sets[other]);
        expected[s] = expected[other];
        break;
      case 1:
        bits.erase(sets[s], number);
        expected[s].erase(number);
        break;
      case 2:
      case 3:
        expected[s].insert(expected[other].begin(), expected[other].end());
        REQUIRE(bits.merge(sets[s], sets[other]) == (expected[s].size() != before));
        (expected[s].size() != before ? merges : old_news)++;
        break;
      default:
        expected[s].insert(number);
        REQUIRE(bits.insert(sets[s], number) == (expected[s].size() != before));
    }
    if (step % 50 != 0) continue;
    for (uint32_t set = 0; set < kSets; ++set)
      for (uint32_t n = 0; n < kNumbers + 600; ++n)
        if (bits.has(sets[set], n) != (expected[set].count(n) == 1)) FAIL("set ", set, " and number ", n, " after step ", step);
  }
  CHECK(merges > 200);
  CHECK(old_news > 50);
}
