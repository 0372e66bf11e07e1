// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/on_threads.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

using namespace einc;

TEST_CASE("pieces of work are done once each, on any number of threads") {
  for (const int threads : {0, 1, 3, 64})
    for (const size_t pieces : {0, 1, 2, 50}) {
      std::vector<std::atomic<int>> done(pieces);
      on_threads(pieces, threads, [&](size_t p) { ++done[p]; });
      for (const std::atomic<int>& times : done) CHECK(times == 1);
    }
}

TEST_CASE("what a piece of work throws reaches the caller, and no further piece begins") {
  for (const int threads : {1, 4}) {
    std::atomic<int> begun = 0;
    const auto work = [&](size_t p) {
      ++begun;
      if (p == 0) throw std::runtime_error("the first");
      if (p >= 100) throw std::logic_error("a later one");
    };
    CHECK_THROWS_WITH_AS(on_threads(1, threads, work), "the first", std::runtime_error);
    begun = 0;
    CHECK_THROWS(on_threads(1000000, threads, work));
    CHECK(begun < 1000000);
    if (threads == 1) CHECK(begun == 1);
  }
}
