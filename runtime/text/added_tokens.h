// SPDX-License-Identifier: Apache-2.0
// Tokens of a tokenizer.json that are found in a text as they stand, before any model sees it: the leftmost, of these the longest.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/piece_trie.h"

namespace einc {

struct AddedToken {
  std::string content;
  int32_t token;
  bool takes_left, takes_right;  // white space beside it, too
  bool normalized;               // looked for in normalized text
};

// Of the list "added_tokens". Throws std::invalid_argument.
std::vector<AddedToken> read_added_tokens(const nlohmann::json& object);

class AddedTokenFinder {
 public:
  void add(AddedToken token) {
    if (token.content.empty()) return;
    trie_.add(token.content, static_cast<int32_t>(tokens_.size()));
    tokens_.push_back(std::move(token));
  }
  // Calls text(begin, end) and token(number) in their order; texts are not empty.
  void divide(std::string_view text, const std::function<void(size_t, size_t)>& between, const std::function<void(int32_t)>& token) const;

 private:
  std::vector<AddedToken> tokens_;
  PieceTrie trie_;
};

}  // namespace einc
