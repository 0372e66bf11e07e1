// SPDX-License-Identifier: Apache-2.0
// Tokens are the characters (code points) that a text has, numbered in their order: nanoGPT's.
#pragma once
#include <unordered_map>
#include <utility>

#include "runtime/text/tokenizer.h"

namespace einc {

class CharacterTokenizer : public Tokenizer {
 public:
  // Token i is characters[i]; no two are equal.
  explicit CharacterTokenizer(std::vector<int32_t> characters);

  int32_t size() const override { return static_cast<int32_t>(characters_.size()); }
  void encode(std::string_view text, const Sink& sink) const override;
  using Tokenizer::encode;
  void decode(std::span<const int32_t> tokens, std::string& text, TextPart part) const override;
  using Tokenizer::decode;
  const std::vector<int32_t>& characters() const { return characters_; }

 private:
  int32_t find(int32_t character) const;  // -1: none

  std::vector<int32_t> characters_;
  int32_t ascii_[128];
  std::unordered_map<int32_t, int32_t> others_;
};

// Those of a text, in the order of their code points. Throws RuntimeFailure (data) with the byte that is not UTF-8.
std::vector<int32_t> characters_of(std::string_view text);

// The vocabulary as a file: {"kind": "characters", "characters": "..."}, the string holding them in the order of their tokens.
void save_characters(const std::string& path, const std::vector<int32_t>& characters);

}  // namespace einc
