// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/xxh64.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace einc {
namespace {

template <class Word>
uint64_t load(const std::byte* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

}  // namespace

void Xxh64::mix_block(const std::byte* block) {
  for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i] = std::rotl(lanes_[i] + load<uint64_t>(block + 8 * i) * kPrimes[1], 31) * kPrimes[0];
}

void Xxh64::update(std::span<const std::byte> bytes) {
  const size_t held = static_cast<size_t>(bytes_ % kBlock);
  bytes_ += bytes.size();
  if (held + bytes.size() < kBlock) {
    std::copy(bytes.begin(), bytes.end(), rest_.begin() + static_cast<std::ptrdiff_t>(held));
    return;
  }
  if (held > 0) {
    const std::span<const std::byte> missing = bytes.first(kBlock - held);
    std::copy(missing.begin(), missing.end(), rest_.begin() + static_cast<std::ptrdiff_t>(held));
    mix_block(rest_.data());
    bytes = bytes.subspan(missing.size());
  }
  for (; bytes.size() >= kBlock; bytes = bytes.subspan(kBlock)) mix_block(bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
}

uint64_t Xxh64::digest() const {
  const auto& [p1, p2, p3, p4, p5] = kPrimes;
  uint64_t hash = p5;
  if (bytes_ >= kBlock) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (const uint64_t lane : lanes_) hash = (hash ^ std::rotl(lane * p2, 31) * p1) * p1 + p4;
  }
  hash += bytes_;
  const std::byte* at = rest_.data();
  const std::byte* end = at + bytes_ % kBlock;
  for (; end - at >= 8; at += 8) hash = std::rotl(hash ^ std::rotl(load<uint64_t>(at) * p2, 31) * p1, 27) * p1 + p4;
  for (; end - at >= 4; at += 4) hash = std::rotl(hash ^ load<uint32_t>(at) * p1, 23) * p2 + p3;
  for (; at < end; ++at) hash = std::rotl(hash ^ load<uint8_t>(at) * p5, 11) * p1;
  hash = (hash ^ hash >> 33) * p2;
  hash = (hash ^ hash >> 29) * p3;
  return hash ^ hash >> 32;
}

}  // namespace einc
