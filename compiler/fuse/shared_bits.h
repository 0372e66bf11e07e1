// SPDX-License-Identifier: Apache-2.0
// Sets of numbers as bitmaps whose blocks are shared. The ancestors of neighbouring groups agree in all but the last blocks: taking them
// over compares block numbers, and a step of n groups needs n blocks, not n bitmaps of n bits. A shared block is copied before it changes.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace einc {

class SharedBits {
 public:
  // A set whose blocks are in this store; an empty one at first. It is moved, never copied: a copy would not know that it shares.
  class Set {
   public:
    Set() = default;
    Set(Set&&) = default;
    Set& operator=(Set&&) = default;

   private:
    friend class SharedBits;
    std::vector<uint32_t> blocks_;  // by number / kBlock
  };

  bool has(const Set& set, uint32_t number) const;
  // Both say whether anything was new.
  bool insert(Set& set, uint32_t number);
  bool merge(Set& into, const Set& from);
  // The same of a set that holds nothing yet.
  void copy(Set& into, const Set& from);
  void erase(Set& set, uint32_t number);

 private:
  static constexpr uint32_t kWords = 8, kBlock = 64 * kWords;  // a cache line
  struct alignas(64) Block {
    std::array<uint64_t, kWords> words{};
  };
  uint32_t add(const Block& block, bool shared);
  // The block, which the set alone has, to change it.
  Block& own(Set& set, size_t block);
  bool unite(uint32_t& into, uint32_t from);

  std::vector<Block> blocks_{Block{}};  // the first is empty
  std::vector<bool> shared_{true};      // by block
};

}  // namespace einc
