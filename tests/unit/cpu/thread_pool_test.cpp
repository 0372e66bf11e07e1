// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/thread_pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace einc::test {
namespace {

// A team of another library, which gives at most two threads.
thread_local int index_in_team = 0;
int size_of_team = 1, forks = 0;

void fork(void (*work)(void*), void* data, unsigned threads, unsigned) {
  ++forks;
  size_of_team = threads < 2 ? 1 : 2;
  std::thread other([&] {
    index_in_team = 1;
    if (size_of_team == 2) work(data);
  });
  work(data);
  other.join();
}

const ThreadTeam kTeam{fork, [] { return index_in_team; }, [] { return size_of_team; }};

}  // namespace

TEST_CASE("every part is done once, by its number, in each of many rounds") {
  // More threads than processors: most begin late, and the caller does their parts.
  for (const int threads : {1, 2, 3, 16}) {
    ThreadPool pool(threads);
    for (int64_t round = 0; round < 2000; ++round) {
      const int64_t count = round % 37;
      std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
      std::atomic<int> wrong{0};
      std::vector<std::atomic<int>> parts(static_cast<size_t>(threads));
      pool.run(count, [&](int part, int64_t begin, int64_t end) {
        if (begin != count * part / threads || end != count * (part + 1) / threads) ++wrong;
        ++parts[static_cast<size_t>(part)];
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      });
      REQUIRE(wrong == 0);
      for (const auto& visit : visits) REQUIRE(visit == 1);
      for (const auto& part : parts) REQUIRE(part <= 1);
    }
  }
}

TEST_CASE("every part is done once on the threads of another team, too, and none is started") {
  for (const int threads : {1, 2, 5}) {
    forks = 0;
    ThreadPool pool(threads, kTeam);
    std::vector<std::thread::id> by(static_cast<size_t>(threads));
    std::atomic<int> visits{0};
    pool.run(7, [&](int part, int64_t begin, int64_t end) {
      CHECK(begin == 7 * part / threads);
      CHECK(end == 7 * (part + 1) / threads);
      visits += static_cast<int>(end - begin);
      by[static_cast<size_t>(part)] = std::this_thread::get_id();
    });
    CHECK(visits == 7);
    CHECK(forks == (threads > 1 ? 1 : 0));
    for (size_t part = 0; part < by.size(); ++part) CHECK(by[part] == by[part % 2]);
  }
}

TEST_CASE("threads that sleep are woken") {
  ThreadPool pool(4);
  bool shared = false;  // in some round each part had a thread of its own
  for (int round = 0; round < 100 && !shared; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::vector<std::thread::id> by(4);
    pool.run(4, [&](int part, int64_t, int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      by[static_cast<size_t>(part)] = std::this_thread::get_id();
    });
    shared = std::set<std::thread::id>(by.begin(), by.end()).size() == 4;
  }
  CHECK(shared);
}

}  // namespace einc::test
