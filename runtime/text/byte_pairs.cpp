// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/byte_pairs.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <queue>

#include "runtime/base/hash.h"
#include "runtime/text/split_words.h"

namespace einc {
namespace {

constexpr size_t kShortWord = 64;         // bytes; joined by searching all pairs for the most urgent one
constexpr size_t kLongestWord = 1 << 20;  // bytes; longer ones are taken in pieces, so that a text of one word takes no more memory

// Tokens of words met before. Each word has one place; who comes later takes it.
class WordCache {
 public:
  explicit WordCache(size_t text_bytes) : entries_(std::bit_ceil(std::clamp<size_t>(text_bytes / 8, 16, 1 << 15))) {}

  struct Entry {
    uint8_t length = 0, count = 0;  // bytes; tokens
    char bytes[30];
    int32_t tokens[8];
  };
  // nullptr: the word is too long to be kept.
  Entry* place_of(std::string_view word) {
    if (word.size() > sizeof(Entry::bytes)) return nullptr;
    return &entries_[static_cast<size_t>(fnv1a(word) * 0x9E3779B97F4A7C15u >> 32) & (entries_.size() - 1)];
  }
  static bool holds(const Entry& entry, std::string_view word) {
    return entry.length == word.size() && std::memcmp(entry.bytes, word.data(), word.size()) == 0;
  }
  static void keep(Entry& entry, std::string_view word, std::span<const int32_t> tokens) {
    if (tokens.size() > std::size(entry.tokens)) return;
    entry.length = static_cast<uint8_t>(word.size());
    entry.count = static_cast<uint8_t>(tokens.size());
    std::memcpy(entry.bytes, word.data(), word.size());
    std::copy(tokens.begin(), tokens.end(), entry.tokens);
  }

 private:
  std::vector<Entry> entries_;
};

uint64_t pair_key(int32_t left, int32_t right) { return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right); }

size_t hash_of_pair(uint64_t pair, size_t slots) {
  return static_cast<size_t>((pair ^ pair >> 29) * 0x9E3779B97F4A7C15u >> 20) & (slots - 1);
}

}  // namespace

BytePairTokenizer::BytePairTokenizer(BytePairVocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {
  slots_.resize(std::bit_ceil(vocabulary_.merges.size() * 2 + 2));
  for (size_t i = 0; i < vocabulary_.merges.size(); ++i) {
    const BytePairVocabulary::Merge& merge = vocabulary_.merges[i];
    const uint64_t pair = pair_key(merge.left, merge.right);
    size_t at = hash_of_pair(pair, slots_.size());
    while (slots_[at].joined.token >= 0 && slots_[at].pair != pair) at = (at + 1) & (slots_.size() - 1);
    // Of a pair that is listed twice, the later urgency counts, as in the tokenizers library.
    slots_[at] = {pair, {vocabulary_.joins_any ? static_cast<uint32_t>(merge.joined) : static_cast<uint32_t>(i), merge.joined}};
  }
  for (size_t token = 0; token < vocabulary_.tokens.size(); ++token) {
    const std::string& bytes = vocabulary_.tokens[token];
    if (bytes.size() == 1) byte_tokens_[static_cast<unsigned char>(bytes[0])] = static_cast<int32_t>(token);
    if (vocabulary_.joins_any && static_cast<int32_t>(token) != vocabulary_.end_of_text) words_[bytes] = static_cast<int32_t>(token);
  }
}

BytePairTokenizer::Joined BytePairTokenizer::join(int32_t left, int32_t right) const {
  const uint64_t pair = pair_key(left, right);
  for (size_t at = hash_of_pair(pair, slots_.size());; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[at];
    if (slot.joined.token < 0 || slot.pair == pair) return slot.joined;
  }
}

void BytePairTokenizer::encode(std::string_view text, const Sink& sink) const {
  constexpr size_t kPiece = 4096;
  WordCache cache(text.size());
  std::vector<int32_t> tokens;
  for (size_t at = 0; at < text.size();) {
    const std::string_view word = text.substr(at, word_length(text.substr(at, kLongestWord), 0));
    WordCache::Entry* entry = cache.place_of(word);
    if (entry && WordCache::holds(*entry, word)) {
      tokens.insert(tokens.end(), entry->tokens, entry->tokens + entry->count);
    } else {
      const size_t before = tokens.size();
      encode_word(word, tokens);
      if (entry) WordCache::keep(*entry, word, std::span(tokens).subspan(before));
    }
    at += word.size();
    if (tokens.size() < kPiece) continue;
    sink(tokens);
    tokens.clear();
  }
  if (!tokens.empty()) sink(tokens);
}

void BytePairTokenizer::encode_word(std::string_view word, std::vector<int32_t>& tokens) const {
  if (vocabulary_.joins_any)
    if (const auto found = words_.find(word); found != words_.end()) return tokens.push_back(found->second);
  if (word.size() > kShortWord) return encode_long_word(word, tokens);
  int32_t parts[kShortWord];
  Joined next[kShortWord];  // of part i with part i + 1
  size_t count = word.size();
  for (size_t i = 0; i < count; ++i) parts[i] = byte_tokens_[static_cast<unsigned char>(word[i])];
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
  tokens.insert(tokens.end(), parts, parts + count);
}

// With a list of parts and a queue of pairs: the time grows as n log n.
void BytePairTokenizer::encode_long_word(std::string_view word, std::vector<int32_t>& tokens) const {
  constexpr size_t kNone = ~size_t{0};
  struct Part {
    int32_t token;  // -1: joined to the part before
    size_t before, behind;
  };
  struct Pair {
    uint32_t urgency;
    size_t left;
    int32_t left_token, right_token, joined;  // tokens as they were when the pair was found
    bool operator<(const Pair& other) const { return std::pair(urgency, left) > std::pair(other.urgency, other.left); }
  };
  std::vector<Part> parts(word.size());
  std::priority_queue<Pair> pairs;
  const auto propose = [&](size_t left) {
    const size_t right = parts[left].behind;
    if (right == kNone) return;
    const Joined joined = join(parts[left].token, parts[right].token);
    if (joined.token >= 0) pairs.push({joined.urgency, left, parts[left].token, parts[right].token, joined.token});
  };
  for (size_t i = 0; i < word.size(); ++i)
    parts[i] = {byte_tokens_[static_cast<unsigned char>(word[i])], i == 0 ? kNone : i - 1, i + 1 == word.size() ? kNone : i + 1};
  for (size_t i = 0; i < word.size(); ++i) propose(i);
  while (!pairs.empty()) {
    const Pair pair = pairs.top();
    pairs.pop();
    Part& left = parts[pair.left];
    if (left.token != pair.left_token || left.behind == kNone || parts[left.behind].token != pair.right_token) continue;
    Part& right = parts[left.behind];
    left.token = pair.joined;
    right.token = -1;
    left.behind = right.behind;
    if (left.behind != kNone) parts[left.behind].before = pair.left;
    propose(pair.left);
    if (left.before != kNone) propose(left.before);
  }
  for (size_t i = 0; i != kNone; i = parts[i].behind) tokens.push_back(parts[i].token);
}

void BytePairTokenizer::decode(std::span<const int32_t> tokens, std::string& text) const {
  for (const int32_t token : tokens) text += vocabulary_.tokens[static_cast<size_t>(token)];
}

}  // namespace einc
