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

uint32_t SharedBits::add(const Block& block, bool shared) {
  blocks_.push_back(block);
  shared_.push_back(shared);
  return static_cast<uint32_t>(blocks_.size() - 1);
}

SharedBits::Block& SharedBits::own(Set& set, size_t block) {
  if (set.blocks_.size() <= block) set.blocks_.resize(block + 1, 0);
  uint32_t& at = set.blocks_[block];
  if (shared_[at]) at = add(Block(blocks_[at]), false);
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

// `into` becomes the block that holds both: one of the two where it does, else a new one. Says whether anything was new to it.
bool SharedBits::unite(uint32_t& into, uint32_t from) {
  const Block &a = blocks_[into], &b = blocks_[from];
  uint64_t only_a = 0, only_b = 0;
  for (uint32_t w = 0; w < kWords; ++w) only_a |= a.words[w] & ~b.words[w], only_b |= b.words[w] & ~a.words[w];
  if (only_b == 0) return false;
  if (only_a == 0) {
    shared_[from] = true;
    into = from;
    return true;
  }
  Block both;
  for (uint32_t w = 0; w < kWords; ++w) both.words[w] = a.words[w] | b.words[w];
  if (shared_[into])
    into = add(both, false);
  else
    blocks_[into] = both;
  return true;
}

void SharedBits::copy(Set& into, const Set& from) {
  into.blocks_ = from.blocks_;
  for (const uint32_t block : from.blocks_) shared_[block] = true;
}

bool SharedBits::merge(Set& into, const Set& from) {
  if (into.blocks_.size() < from.blocks_.size()) into.blocks_.resize(from.blocks_.size(), 0);
  bool fresh = false;
  for (size_t b = 0; b < from.blocks_.size(); ++b)
    if (into.blocks_[b] != from.blocks_[b] && from.blocks_[b] != 0) fresh |= unite(into.blocks_[b], from.blocks_[b]);
  return fresh;
}

}  // namespace einc
