#include "runtime/base/random.h"

#include <cmath>
#include <utility>

#include "runtime/base/hash.h"

namespace einc {
namespace {

uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

// log(x) for x in (0, 1]: x = m * 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 (s + s^3/3 + s^5/5 + ...), s = (m-1)/(m+1).
double portable_log(double x) {
  int e = 0;
  double m = std::frexp(x, &e);
  if (m < 0.70710678118654752) {
    m *= 2;
    --e;
  }
  const double s = (m - 1) / (m + 1), z = s * s;
  double series = 0;
  for (int k = 23; k >= 1; k -= 2) series = series * z + 1.0 / k;
  return e * 0.69314718055994531 + 2 * s * series;
}

// cos and sin of x in [0, pi/4] by their Taylor series.
std::pair<double, double> portable_cos_sin(double x) {
  const double z = x * x;
  double c = 1, s = 1;
  for (int k = 9; k >= 1; --k) {
    c = 1 - c * z / ((2 * k - 1) * (2 * k));
    s = 1 - s * z / ((2 * k) * (2 * k + 1));
  }
  return {c, s * x};
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

NormalPair box_muller(uint32_t first, uint32_t second) {
  const double radius = std::sqrt(-2 * portable_log((static_cast<double>(first) + 1) * 0x1p-32));
  // The angle as an octant and a remainder in [0, pi/4]; odd octants run backwards from the next axis.
  const uint32_t octant = second >> 29, rest = second & 0x1FFFFFFF;
  const double turn = (octant % 2 == 0 ? rest : 0x20000000 - rest) * 0x1p-29;
  auto [c, s] = portable_cos_sin(turn * 0.78539816339744831);
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
