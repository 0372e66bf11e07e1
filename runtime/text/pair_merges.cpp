// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/pair_merges.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <utility>

namespace einc {
namespace {

constexpr size_t kFew = 64;  // tokens; joined by searching all pairs for the most urgent one

uint64_t pair_key(int32_t left, int32_t right) { return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right); }

size_t hash_of_pair(uint64_t pair, size_t slots) {
  return static_cast<size_t>((pair ^ pair >> 29) * 0x9E3779B97F4A7C15u >> 20) & (slots - 1);
}

}  // namespace

PairMerges::PairMerges(std::span<const PairMerge> merges) : slots_(std::bit_ceil(merges.size() * 2 + 2)) {
  for (const PairMerge& merge : merges) {
    const uint64_t pair = pair_key(merge.left, merge.right);
    size_t at = hash_of_pair(pair, slots_.size());
    while (slots_[at].joined.token >= 0 && slots_[at].pair != pair) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {pair, {merge.urgency, merge.joined}};
  }
}

PairMerges::Joined PairMerges::join(int32_t left, int32_t right) const {
  const uint64_t pair = pair_key(left, right);
  for (size_t at = hash_of_pair(pair, slots_.size());; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[at];
    if (slot.joined.token < 0 || slot.pair == pair) return slot.joined;
  }
}

void PairMerges::apply(std::vector<int32_t>& tokens, size_t from) const {
  const size_t count = tokens.size() - from;
  if (count > kFew) return apply_to_many(tokens, from);
  if (count > 1) apply_to_few(tokens, from);
}

void PairMerges::apply_to_few(std::vector<int32_t>& tokens, size_t from) const {
  int32_t* parts = tokens.data() + from;
  Joined next[kFew];  // of part i with part i + 1
  size_t count = tokens.size() - from;
  for (size_t i = 0; i + 1 < count; ++i) next[i] = join(parts[i], parts[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i)
      if (next[i].urgency < next[best].urgency) best = i;
    if (next[best].token < 0) break;
    parts[best] = next[best].token;
    std::copy(parts + best + 2, parts + count, parts + best + 1);
    std::copy(next + best + 1, next + count - 1, next + best);
    --count;
    if (best + 1 < count) next[best] = join(parts[best], parts[best + 1]);
    if (best > 0) next[best - 1] = join(parts[best - 1], parts[best]);
  }
  tokens.resize(from + count);
}

// With a list of parts and a queue of pairs: the time grows as n log n.
void PairMerges::apply_to_many(std::vector<int32_t>& tokens, size_t from) const {
  constexpr size_t kNone = ~size_t{0};
  struct Part {
    int32_t token;
    size_t before, behind;
    bool gone;  // joined to the part before
  };
  struct Pair {
    uint32_t urgency;
    size_t left;
    int32_t left_token, right_token, joined;  // tokens as they were when the pair was found
    bool operator<(const Pair& other) const { return std::pair(urgency, left) > std::pair(other.urgency, other.left); }
  };
  const size_t count = tokens.size() - from;
  std::vector<Part> parts(count);
  std::priority_queue<Pair> pairs;
  const auto propose = [&](size_t left) {
    const size_t right = parts[left].behind;
    if (right == kNone) return;
    const Joined joined = join(parts[left].token, parts[right].token);
    if (joined.token >= 0) pairs.push({joined.urgency, left, parts[left].token, parts[right].token, joined.token});
  };
  for (size_t i = 0; i < count; ++i) parts[i] = {tokens[from + i], i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1, false};
  for (size_t i = 0; i < count; ++i) propose(i);
  while (!pairs.empty()) {
    const Pair pair = pairs.top();
    pairs.pop();
    Part& left = parts[pair.left];
    if (left.gone || left.token != pair.left_token || left.behind == kNone || parts[left.behind].token != pair.right_token) continue;
    Part& right = parts[left.behind];
    left.token = pair.joined;
    right.gone = true;
    left.behind = right.behind;
    if (left.behind != kNone) parts[left.behind].before = pair.left;
    propose(pair.left);
    if (left.before != kNone) propose(left.before);
  }
  tokens.resize(from);
  for (size_t i = 0; i != kNone; i = parts[i].behind) tokens.push_back(parts[i].token);
}

}  // namespace einc
