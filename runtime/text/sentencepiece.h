// SPDX-License-Identifier: Apache-2.0
// Tokens as sentencepiece makes them (Kudo and Richardson, 2018): a text is normalized, its spaces become U+2581, and it falls into
// pieces by a unigram model or by byte pairs. No control token is added. Normalized text comes back, not the text's own bytes.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/text/pair_merges.h"
#include "runtime/text/sentencepiece_file.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/unigram.h"

namespace einc {

class SentencePieceTokenizer : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(SentencePieceModel model);

  int32_t size() const override { return static_cast<int32_t>(model_.pieces.size()); }
  void encode(std::string_view text, const Sink& sink) const override;
  using Tokenizer::encode;
  void decode(std::span<const int32_t> tokens, std::string& text, TextPart part) const override;
  using Tokenizer::decode;

 private:
  class Encoding;

  void prepare_byte_pairs();
  // What the text begins with, as it shall be: bytes taken, and what for.
  CharsMap::Match normalized_prefix(std::string_view text) const;
  void append_unknown(std::string_view characters, std::vector<int32_t>& tokens) const;
  void encode_word_by_pairs(std::string_view word, std::vector<int32_t>& tokens) const;
  std::string decoded(const SentencePieceModel::Piece& piece) const;

  SentencePieceModel model_;
  std::string_view space_;       // U+2581, or a blank
  bool words_are_apart_ = true;  // no piece goes on behind a space in it, so words are encoded one by one
  int32_t byte_tokens_[256] = {};
  Unigram unigram_;
  PieceTrie defined_;  // pieces that stay whole wherever they stand
  // Symbols of byte pairs: a token, or, from size() on, a character of pieces that is no piece of its own.
  std::unordered_map<int32_t, int32_t> symbols_;  // by character
  std::vector<int32_t> characters_;               // of symbols from size() on
  PairMerges merges_;
  std::vector<std::string> decoded_;  // by token
};

}  // namespace einc
