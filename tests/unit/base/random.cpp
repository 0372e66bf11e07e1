// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/base/init.h"

using namespace einc;

TEST_CASE("philox: known answers of Random123") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random: box_muller agrees with the library's functions") {
  double worst = 0;
  PhiloxCounter words{1, 2, 3, 4};
  for (int i = 0; i < 20000; ++i) {
    words = philox(words, {7, 9});
    const double radius = std::sqrt(-2 * std::log((words[0] + 1.0) / 4294967296.0));
    const double angle = 2 * 3.14159265358979323846 * (words[1] / 4294967296.0);
    const NormalPair pair = box_muller(words[0], words[1]);
    worst = std::max({worst, std::fabs(pair.even - radius * std::cos(angle)), std::fabs(pair.odd - radius * std::sin(angle))});
  }
  CHECK(worst < 4e-15);
  CHECK(box_muller(0xFFFFFFFF, 0).even == 0);
  CHECK(box_muller(0, 0).even == doctest::Approx(std::sqrt(2 * 32 * std::log(2.0))));
  CHECK(std::fabs(box_muller(0, 0x40000000).even) < 1e-15);
}

TEST_CASE("random: moments, streams and steps") {
  const PhiloxKey key = random_key(3, "h.0.drop");
  constexpr int kCount = 40000;
  double mean = 0, square = 0, uniform = 0;
  int kept = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double x = random_normal(key, 5, i), u = random_uniform(key, 5, i);
    CHECK_FALSE((u < 0 || u >= 1));
    mean += x / kCount;
    square += x * x / kCount;
    uniform += u / kCount;
    kept += random_keep(key, 5, i, 0.9) ? 1 : 0;
  }
  CHECK(std::fabs(mean) < 0.02);
  CHECK(std::fabs(square - 1) < 0.03);
  CHECK(std::fabs(uniform - 0.5) < 0.01);
  CHECK(std::fabs(kept / double{kCount} - 0.9) < 0.01);
  CHECK(random_uniform(key, 5, 0) != random_uniform(key, 6, 0));
  CHECK(random_uniform(key, 5, 0) != random_uniform(random_key(3, "h.1.drop"), 5, 0));
  CHECK(random_uniform(key, 5, 0) != random_uniform(random_key(4, "h.0.drop"), 5, 0));
}

TEST_CASE("random: the sequence itself does not change between versions") {
  const PhiloxKey key = random_key(42, "w");
  std::vector<double> values(6);
  const double arguments[] = {0.0, 1.0};
  fill_init(InitKind::normal, arguments, 42, "w", 0, values);
  for (uint64_t i = 0; i < 6; ++i) CHECK(values[i] == random_normal(key, 0, i));
  fill_init(InitKind::uniform, arguments, 42, "w", 0, values);
  for (uint64_t i = 0; i < 6; ++i) CHECK(values[i] == random_uniform(key, 0, i));
}

TEST_CASE("init: filling in pieces gives the same tensor") {
  const double arguments[] = {0.0, 0.02, -0.03, 0.04};
  for (const InitKind kind :
       {InitKind::zeros, InitKind::ones, InitKind::constant, InitKind::normal, InitKind::uniform, InitKind::trunc_normal}) {
    const std::span<const double> used(arguments, static_cast<size_t>(argument_count(kind)));
    std::vector<double> whole(37), pieces(37);
    fill_init(kind, used, 1, "wte", 0, whole);
    fill_init(kind, used, 1, "wte", 0, std::span(pieces).first(13));
    fill_init(kind, used, 1, "wte", 13, std::span(pieces).subspan(13));
    CHECK(whole == pieces);
  }
}

TEST_CASE("init: trunc_normal stays within its bounds, far tails included") {
  std::vector<double> values(500);
  for (const auto& [lo, hi] : {std::pair{-0.02, 0.02}, std::pair{5.0, 6.0}, std::pair{50.0, 60.0}}) {
    const double arguments[] = {0.0, 1.0, lo, hi};
    fill_init(InitKind::trunc_normal, arguments, 1, "w", 0, values);
    for (const double x : values) CHECK((x >= lo && x <= hi));
  }
}
