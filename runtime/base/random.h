// SPDX-License-Identifier: Apache-2.0
// The random sequences of the language: which number element i of a stream gets. A stream is (seed, name); a draw from it
// adds the step and the element's index. Everything is integer arithmetic and correctly rounded f64 + - * / fma sqrt in one
// order (random.cpp), so that every backend that follows it gets the same bits.
//
//   hash  = FNV-1a, 64 bits, over the bytes of the name
//   key   = words 0 and 1 of philox({low(hash), high(hash), 0x636E6965, 0}, {low(seed), high(seed)})
//   words = philox({low(i / 4), high(i / 4), low(step), high(step)}, key); element i owns word i % 4
//   uniform:   (word >> 8) * 2^-24, in [0, 1)
//   keep mask: 1 where the uniform is below the keep probability, else 0
//   bits:      word >> 1, whole numbers below 2^31
//   gumbel:    -log(-log((word + 1/2) * 2^-32)), the second logarithm that of 1/32 of its argument plus 5 log 2
//   normal:    Box-Muller on the pairs of words (0, 1) and (2, 3): r = sqrt(-2 log((w + 1) * 2^-32)) of the pair's first
//              word, angle = 2 pi * 2^-32 * its second; the even element is r cos(angle), the odd one r sin(angle)
#pragma once
#include <cstdint>
#include <string_view>

#include "runtime/base/philox.h"

namespace einc {

PhiloxKey random_key(uint64_t seed, std::string_view stream);

// The four words that elements 4*block ... 4*block+3 own.
PhiloxCounter random_words(PhiloxKey key, uint64_t step, uint64_t block);

double random_uniform(PhiloxKey key, uint64_t step, uint64_t index);
double random_normal(PhiloxKey key, uint64_t step, uint64_t index);
inline constexpr int64_t kRandomBitsEnd = int64_t{1} << 31;
int64_t random_bits(PhiloxKey key, uint64_t step, uint64_t index);
double random_gumbel(PhiloxKey key, uint64_t step, uint64_t index);
inline bool random_keep(PhiloxKey key, uint64_t step, uint64_t index, double keep) { return random_uniform(key, step, index) < keep; }

inline constexpr double kLogOf32 = 3.4657359027997265;

// Of the logarithm, sine and cosine of box_muller: log((1 + s) / (1 - s)) = 2 s + s^3 (c0 + c1 s^2 + ...), sin(r) = r + r^3 (...),
// cos(r) = 1 - r^2 / 2 + r^4 (...). Part of the sequence: other coefficients are other numbers.
namespace box_muller_numbers {
inline constexpr double kSqrtHalf = 0.70710678118654752, kLn2 = 0.69314718055994531, kQuarterPi = 0.78539816339744831;
inline constexpr double kLogSeries[] = {0.66666666666667396, 0.39999999999376612, 0.28571428751627181, 0.2222219755213358,
                                        0.181836209122515,   0.15312518420371354, 0.1481207579715455};
inline constexpr double kSinSeries[] = {-0.1666666666666663,   0.0083333333333218407,  -0.00019841269829358571,
                                        2.7557313538554341e-6, -2.5050734399872692e-8, 1.5895434146411586e-10};
inline constexpr double kCosSeries[] = {0.041666666666666602,   -0.0013888888888874441, 2.4801587289636317e-5,
                                        -2.7557314387473928e-7, 2.0875727060114306e-9,  -1.1359802563253344e-11};
}  // namespace box_muller_numbers

// The two normal numbers of a pair of words.
struct NormalPair {
  double even, odd;
};
NormalPair box_muller(uint32_t first, uint32_t second);

}  // namespace einc
