// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding as GPT-2 does it (Radford et al., 2019; Sennrich et al., 2016): a text falls into words, a word into bytes, and
// neighbours are joined, the most urgent pair first and the leftmost of equals, until no pair is in the vocabulary.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/text/pair_merges.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/vocabulary.h"

namespace einc {

class BytePairTokenizer : public Tokenizer {
 public:
  explicit BytePairTokenizer(BytePairVocabulary vocabulary);

  int32_t size() const override { return static_cast<int32_t>(vocabulary_.tokens.size()); }
  void encode(std::string_view text, const Sink& sink) const override;
  using Tokenizer::encode;
  void decode(std::span<const int32_t> tokens, std::string& text, TextPart part) const override;
  using Tokenizer::decode;
  int32_t end_of_text() const { return vocabulary_.end_of_text; }

 private:
  void encode_word(std::string_view word, std::vector<int32_t>& tokens) const;

  BytePairVocabulary vocabulary_;
  PairMerges merges_;
  int32_t byte_tokens_[256];
  std::unordered_map<std::string_view, int32_t> words_;  // that are tokens, where the vocabulary joins any
};

}  // namespace einc
