// SPDX-License-Identifier: Apache-2.0
// Tokens of words met before: texts repeat their words. Each word has one place; who comes later takes it.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/hash.h"

namespace einc {

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

  // Appends the word's tokens: those kept, else what encode(word, tokens) appends.
  template <class Encode>
  void append(std::string_view word, std::vector<int32_t>& tokens, const Encode& encode) {
    Entry* entry = place_of(word);
    if (entry && holds(*entry, word)) {
      tokens.insert(tokens.end(), entry->tokens, entry->tokens + entry->count);
      return;
    }
    const size_t before = tokens.size();
    encode(word, tokens);
    if (entry) keep(*entry, word, std::span(tokens).subspan(before));
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace einc
