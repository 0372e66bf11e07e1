// The random sequences of the language: which number element i of a stream gets. A stream is (seed, name); a draw from it
// adds the step and the element's index. Everything is integer arithmetic and correctly rounded f64 + - * / sqrt, so that
// every backend that follows this file gets the same bits.
//
//   hash  = FNV-1a, 64 bits, over the bytes of the name
//   key   = words 0 and 1 of philox({low(hash), high(hash), 0x636E6965, 0}, {low(seed), high(seed)})
//   words = philox({low(i / 4), high(i / 4), low(step), high(step)}, key); element i owns word i % 4
//   uniform:   (word >> 8) * 2^-24, in [0, 1)
//   keep mask: 1 where the uniform is below the keep probability, else 0
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
inline bool random_keep(PhiloxKey key, uint64_t step, uint64_t index, double keep) { return random_uniform(key, step, index) < keep; }

// The two normal numbers of a pair of words.
struct NormalPair {
  double even, odd;
};
NormalPair box_muller(uint32_t first, uint32_t second);

}  // namespace einc
