// SPDX-License-Identifier: Apache-2.0
// Combining hashes inside compiler/symbolic: the finalizer of splitmix64 over a running value.
#pragma once
#include <cstddef>
#include <cstdint>

namespace einc {

inline uint64_t mix_hash(uint64_t seed, uint64_t value) {
  uint64_t x = seed + 0x9E3779B97F4A7C15u + value;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace einc
