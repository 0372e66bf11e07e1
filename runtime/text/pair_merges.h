// SPDX-License-Identifier: Apache-2.0
// The step that all byte-pair encodings share (Sennrich et al., 2016): of neighbouring tokens the most urgent pair becomes one, the
// leftmost of equals, until no pair is listed. What a word's first tokens are, and where words end, is the caller's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace einc {

struct PairMerge {
  int32_t left, right, joined;  // joined >= 0
  uint32_t urgency;             // lower goes first
};

class PairMerges {
 public:
  PairMerges() : PairMerges(std::span<const PairMerge>()) {}
  // Of a pair that is listed twice, the later row counts, as in the tokenizers library.
  explicit PairMerges(std::span<const PairMerge> merges);

  // Joins what can be joined among tokens[from ...].
  void apply(std::vector<int32_t>& tokens, size_t from) const;

 private:
  // What a pair of neighbours becomes, and how urgent that is.
  struct Joined {
    uint32_t urgency = ~uint32_t{0};
    int32_t token = -1;
  };
  struct Slot {
    uint64_t pair = ~uint64_t{0};
    Joined joined;
  };
  Joined join(int32_t left, int32_t right) const;
  void apply_to_few(std::vector<int32_t>& tokens, size_t from) const;
  void apply_to_many(std::vector<int32_t>& tokens, size_t from) const;

  std::vector<Slot> slots_;  // a hash table of pairs; as many as a power of two
};

}  // namespace einc
