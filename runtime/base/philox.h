// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10, the counter-based generator of Random123 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// 2011): ten rounds of multiply and xor turn a 128-bit counter and a 64-bit key into four 32-bit words. No state: any
// element of any stream can be drawn at once, on any device, in any order.
#pragma once
#include <array>
#include <cstdint>

namespace einc {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

}  // namespace einc
