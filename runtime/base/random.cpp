// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/random.h"

#include <cmath>
#include <span>
#include <utility>

#include "runtime/base/hash.h"

namespace einc {

using namespace box_muller_numbers;

namespace {

uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

double polynomial(double x, std::span<const double> coefficients) {
  double sum = coefficients.back();
  for (size_t i = coefficients.size() - 1; i > 0; --i) sum = std::fma(sum, x, coefficients[i - 1]);
  return sum;
}

// log(x) for x in (0, 1]: x = m * 2^e with m in [sqrt(1/2), sqrt(2)), s = (m - 1) / (m + 1).
double portable_log(double x) {
  int e = 0;
  double m = std::frexp(x, &e);
  if (m < kSqrtHalf) {
    m *= 2;
    --e;
  }
  const double s = (m - 1) / (m + 1), z = s * s;
  return std::fma(e, kLn2, std::fma(s * z, polynomial(z, kLogSeries), 2 * s));
}

// cos and sin of x in [0, pi/4].
std::pair<double, double> portable_cos_sin(double x) {
  const double z = x * x;
  return {std::fma(z * z, polynomial(z, kCosSeries), std::fma(z, -0.5, 1)), std::fma(x * z, polynomial(z, kSinSeries), x)};
}

}  // namespace

PhiloxKey random_key(uint64_t seed, std::string_view stream) {
  const uint64_t hash = fnv1a(stream);
  const PhiloxCounter words = philox({low(hash), high(hash), 0x636E6965, 0}, {low(seed), high(seed)});
  return {words[0], words[1]};
}

PhiloxCounter random_words(PhiloxKey key, uint64_t step, uint64_t block) {
  return philox({low(block), high(block), low(step), high(step)}, key);
}

double random_uniform(PhiloxKey key, uint64_t step, uint64_t index) {
  return (random_words(key, step, index / 4)[index % 4] >> 8) * 0x1p-24;
}

int64_t random_bits(PhiloxKey key, uint64_t step, uint64_t index) { return random_words(key, step, index / 4)[index % 4] >> 1; }

double random_gumbel(PhiloxKey key, uint64_t step, uint64_t index) {
  const double share = (static_cast<double>(random_words(key, step, index / 4)[index % 4]) + 0.5) * 0x1p-32;
  return -(portable_log(-portable_log(share) * 0x1p-5) + kLogOf32);
}

NormalPair box_muller(uint32_t first, uint32_t second) {
  const double radius = std::sqrt(-2 * portable_log((static_cast<double>(first) + 1) * 0x1p-32));
  // The angle as an octant and a remainder in [0, pi/4]; odd octants run backwards from the next axis.
  const uint32_t octant = second >> 29, rest = second & 0x1FFFFFFF;
  const double turn = (octant % 2 == 0 ? rest : 0x20000000 - rest) * 0x1p-29;
  auto [c, s] = portable_cos_sin(turn * kQuarterPi);
  if (octant % 4 == 1 || octant % 4 == 2) std::swap(c, s);
  const double x = octant >= 2 && octant <= 5 ? -c : c;
  const double y = octant >= 4 ? -s : s;
  return {radius * x, radius * y};
}

double random_normal(PhiloxKey key, uint64_t step, uint64_t index) {
  const PhiloxCounter words = random_words(key, step, index / 4);
  const size_t pair = index % 4 / 2 * 2;
  const NormalPair normal = box_muller(words[pair], words[pair + 1]);
  return index % 2 == 0 ? normal.even : normal.odd;
}

}  // namespace einc
