// SPDX-License-Identifier: Apache-2.0
// As the standard's section 6.2.2 writes it: a message schedule of 64 words, eight working variables.
#include "runtime/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace einc {
namespace {

constexpr size_t kBlock = 64;
// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (section 4.2.2).
constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

class Digest {
 public:
  void update(std::string_view bytes) {
    count_ += bytes.size();
    while (!bytes.empty()) {
      const size_t taken = std::min(bytes.size(), kBlock - held_);
      std::memcpy(rest_ + held_, bytes.data(), taken);
      held_ += taken;
      bytes.remove_prefix(taken);
      if (held_ == kBlock) mix();
    }
  }

  Sha256 finish() {
    const uint64_t bits = count_ * 8;
    update(std::string_view("\x80", 1));
    while (held_ != kBlock - sizeof bits) update(std::string_view("\0", 1));
    char length[sizeof bits];
    for (size_t i = 0; i < sizeof bits; ++i) length[i] = static_cast<char>(bits >> (56 - 8 * i));
    update({length, sizeof length});
    Sha256 digest;
    for (size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<unsigned char>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
  }

 private:
  void mix() {
    uint32_t w[64];
    for (size_t i = 0; i < 16; ++i)
      w[i] = uint32_t{rest_[4 * i]} << 24 | uint32_t{rest_[4 * i + 1]} << 16 | uint32_t{rest_[4 * i + 2]} << 8 | rest_[4 * i + 3];
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t small0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3,
                     small1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + small0 + w[i - 7] + small1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t big1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25), choice = (e & f) ^ (~e & g);
      const uint32_t first = h + big1 + choice + kRounds[i] + w[i];
      const uint32_t big0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22), majority = (a & b) ^ (a & c) ^ (b & c);
      h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + big0 + majority;
    }
    const uint32_t added[] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; ++i) state_[i] += added[i];
    held_ = 0;
  }

  // The same of the square roots of the first eight primes (section 5.3.3).
  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  unsigned char rest_[kBlock];
  size_t held_ = 0;  // of a block
  uint64_t count_ = 0;
};

}  // namespace

Sha256 sha256(std::initializer_list<std::string_view> parts) {
  Digest digest;
  for (const std::string_view part : parts) digest.update(part);
  return digest.finish();
}

}  // namespace einc
