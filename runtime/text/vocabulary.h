// SPDX-License-Identifier: Apache-2.0
// Vocabularies as files hold them, read as hostile.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "runtime/text/tokenizer.h"

namespace einc {

inline constexpr uint64_t kMaxVocabularyFile = 64 << 20;  // bytes; the largest tokenizer.json known, Gemma 3's, has 33 MB

// What byte-pair encoding works by. Every single byte is a token.
struct BytePairVocabulary {
  std::vector<std::string> tokens;  // bytes by token
  // Pairs of tokens that become one, the most urgent first. A pair is joined for its place in this list.
  struct Merge {
    int32_t left, right, joined;
  };
  std::vector<Merge> merges;
  // tiktoken's rule: neighbours join when their bytes are a token, the lowest first, and a word that is a token is that token. Then
  // `merges` holds all such pairs, and urgency is the joined token's number.
  bool joins_any = false;
  int32_t end_of_text = -1;  // GPT-2's <|endoftext|>: never made from text; -1: none
};

// A whole file. Throws RuntimeFailure: resource, or data when it is larger than any vocabulary.
std::string read_vocabulary(const std::string& path);
// What a file's content shows it to be; gpt2 where nothing else.
TokenizerKind kind_of_file(const std::string& path);
// By token. Throws RuntimeFailure: data, resource.
std::vector<int32_t> read_characters(const std::string& path);
BytePairVocabulary read_byte_pairs(const VocabularyFiles& files);

}  // namespace einc
