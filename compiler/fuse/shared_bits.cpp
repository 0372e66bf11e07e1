// SPDX-License-Identifier: Apache-2.0
// Merging keeps one of the two blocks where it holds the other: that is what makes blocks shared.
#include "compiler/fuse/shared_bits.h"

namespace einc {
namespace {

uint64_t bit_of(uint32_t number) { return uint64_t{1} << number % 64; }

}  // namespace

bool SharedBits::has(const Set& set, uint32_t number) const {
  const size_t block = number / kBlock;
  return block < set.blocks_.size() && (blocks_[set.blocks_[block]].words[number / 64 % kWords] & bit_of(number)) != 0;
}

SharedBits::Block& SharedBits::own(Set& set, size_t block) {
  if (set.blocks_.size() <= block) set.blocks_.resize(block + 1, 0);
  uint32_t& at = set.blocks_[block];
  if (blocks_[at].shared) {
    Block copy = blocks_[at];
    copy.shared = false;
    at = static_cast<uint32_t>(blocks_.size());
    blocks_.push_back(copy);
  }
  return blocks_[at];
}

bool SharedBits::insert(Set& set, uint32_t number) {
  if (has(set, number)) return false;
  own(set, number / kBlock).words[number / 64 % kWords] |= bit_of(number);
  return true;
}

void SharedBits::erase(Set& set, uint32_t number) {
  if (has(set, number)) own(set, number / kBlock).words[number / 64 % kWords] &= ~bit_of(number);
}

// The block that holds both: one of the two where it does, else a new one.
uint32_t SharedBits::unite(uint32_t into, uint32_t from) {
  Block both = blocks_[into];
  for (uint32_t w = 0; w < kWords; ++w) both.words[w] |= blocks_[from].words[w];
  if (both.words == blocks_[into].words) return into;
  if (both.words == blocks_[from].words) {
    blocks_[from].shared = true;
    return from;
  }
  if (!blocks_[into].shared) {
    blocks_[into].words = both.words;
    return into;
  }
  both.shared = false;
  blocks_.push_back(both);
  return static_cast<uint32_t>(blocks_.size() - 1);
}

bool SharedBits::merge(Set& into, const Set& from) {
  if (into.blocks_.size() < from.blocks_.size()) into.blocks_.resize(from.blocks_.size(), 0);
  bool fresh = false;
  for (size_t b = 0; b < from.blocks_.size(); ++b) {
    uint32_t& at = into.blocks_[b];
    const uint32_t other = from.blocks_[b];
    if (at == other || other == 0) continue;
    const std::array<uint64_t, kWords> before = blocks_[at].words;
    at = unite(at, other);
    fresh = fresh || blocks_[at].words != before;
  }
  return fresh;
}

}  // namespace einc
