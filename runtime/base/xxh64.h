// SPDX-License-Identifier: Apache-2.0
// XXH64 (Yann Collet's xxHash, seed 0) of bytes that come in pieces: the checksum of checkpoints' files, as `xxhsum -H1` prints
// it. It finds damage; it does not withstand somebody who wants two contents of one hash.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace einc {

class Xxh64 {
 public:
  void update(std::span<const std::byte> bytes);
  uint64_t digest() const;

 private:
  void mix_block(const std::byte* block);

  static constexpr size_t kBlock = 32;
  static constexpr uint64_t kPrimes[] = {0x9E3779B185EBCA87u, 0xC2B2AE3D27D4EB4Fu, 0x165667B19E3779F9u, 0x85EBCA77C2B2AE63u,
                                         0x27D4EB2F165667C5u};
  std::array<uint64_t, 4> lanes_{kPrimes[0] + kPrimes[1], kPrimes[1], 0, uint64_t{0} - kPrimes[0]};
  std::array<std::byte, kBlock> rest_{};  // of which bytes_ % kBlock are taken
  uint64_t bytes_ = 0;
};

inline uint64_t xxh64(std::span<const std::byte> bytes) {
  Xxh64 hash;
  hash.update(bytes);
  return hash.digest();
}

}  // namespace einc
