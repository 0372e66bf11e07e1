// SPDX-License-Identifier: Apache-2.0
// Which token a number falls on, by hand.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "runtime/base/failure.h"
#include "runtime/base/random.h"
#include "runtime/sample/choose_token.h"

using namespace einc;

namespace {

const double kInfinity = std::numeric_limits<double>::infinity();
// Probabilities 0.1, 0.4, 0.2, 0.3.
const std::vector<double> kLogits = {std::log(1.0), std::log(4.0), std::log(2.0), std::log(3.0)};

}  // namespace

TEST_CASE("tokens lie side by side, the most likely first") {
  const std::pair<double, int32_t> rows[] = {{0, 1}, {0.39, 1}, {0.41, 3}, {0.69, 3}, {0.71, 2}, {0.89, 2}, {0.91, 0}, {0.999999, 0}};
  for (const auto& [uniform, token] : rows) {
    CAPTURE(uniform);
    CHECK(choose_token(kLogits, {}, uniform) == token);
  }
}

TEST_CASE("rules leave the most likely tokens") {
  struct Row {
    SamplingRule rule;
    double uniform;
    int32_t token;
  };
  const Row rows[] = {
      {{.temperature = 0}, 0.99, 1},
      {{.top_k = 1}, 0.99, 1},
      {{.top_k = 2}, 4.0 / 7 - 0.01, 1},
      {{.top_k = 2}, 4.0 / 7 + 0.01, 3},
      {{.top_k = 2}, 0.99, 3},
      {{.top_k = 99}, 0.99, 0},
      {{.top_p = 0.1}, 0.99, 1},   // the first one reaches it alone
      {{.top_p = 0.69}, 0.99, 3},  // 0.4 does not, 0.7 does
      {{.top_p = 0.71}, 0.99, 2},
      {{.top_k = 3, .top_p = 0.75}, 0.99, 3},       // of the three that are left, with 0.9 together
      {{.temperature = 0.5}, 16.0 / 30 - 0.01, 1},  // squares: 1 16 4 9
      {{.temperature = 0.5}, 16.0 / 30 + 0.01, 3},
      {{.temperature = 1e-3}, 0.99, 1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.rule.temperature);
    CAPTURE(row.rule.top_k);
    CAPTURE(row.rule.top_p);
    CAPTURE(row.uniform);
    CHECK(choose_token(kLogits, row.rule, row.uniform) == row.token);
  }
}

TEST_CASE("equal tokens follow each other by number, impossible ones are never chosen") {
  CHECK(choose_token(std::vector<double>{1, 2, 2, 1}, {.temperature = 0}, 0.5) == 1);
  CHECK(choose_token(std::vector<double>{1, 1, 1, 1}, {.top_k = 2}, 0.6) == 1);
  CHECK(choose_token(std::vector<double>{-kInfinity, 5, -kInfinity}, {}, 0.999999) == 1);
  CHECK(choose_token(std::vector<double>{-1e300, 0, 1e300}, {}, 0.5) == 2);
}

TEST_CASE("no choice among numbers that are none") {
  CHECK_THROWS_AS(choose_token(std::vector<double>{1, std::nan(""), 2}, {}, 0.5), RuntimeFailure);
  CHECK_THROWS_AS(choose_token(std::vector<double>{-kInfinity, -kInfinity}, {}, 0.5), RuntimeFailure);
  CHECK_THROWS_AS(choose_token(std::vector<double>{1, kInfinity}, {}, 0.5), RuntimeFailure);
}

TEST_CASE("draws come as often as they are likely") {
  const PhiloxKey key = random_key(1, "test");
  constexpr int kDraws = 20000;
  int counts[4] = {};
  for (uint64_t i = 0; i < kDraws; ++i) ++counts[choose_token(kLogits, {}, random_uniform(key, i, 0))];
  const double wanted[] = {0.1, 0.4, 0.2, 0.3};
  double chi_squared = 0;
  for (int i = 0; i < 4; ++i) chi_squared += std::pow(counts[i] - wanted[i] * kDraws, 2) / (wanted[i] * kDraws);
  CHECK(chi_squared < 16.3);  // three degrees of freedom: one in a thousand
}
