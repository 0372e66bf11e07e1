// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/byte_pairs.h"

#include "runtime/text/split_words.h"
#include "runtime/text/word_cache.h"

namespace einc {
namespace {

constexpr size_t kLongestWord = 1 << 20;  // bytes; longer ones are taken in pieces, so that a text of one word takes no more memory

std::vector<PairMerge> with_urgency(const BytePairVocabulary& vocabulary) {
  std::vector<PairMerge> merges;
  for (const BytePairVocabulary::Merge& merge : vocabulary.merges)
    merges.push_back({merge.left, merge.right, merge.joined,
                      vocabulary.joins_any ? static_cast<uint32_t>(merge.joined) : static_cast<uint32_t>(merges.size())});
  return merges;
}

}  // namespace

BytePairTokenizer::BytePairTokenizer(BytePairVocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)), merges_(with_urgency(vocabulary_)) {
  for (size_t token = 0; token < vocabulary_.tokens.size(); ++token) {
    const std::string& bytes = vocabulary_.tokens[token];
    if (bytes.size() == 1) byte_tokens_[static_cast<unsigned char>(bytes[0])] = static_cast<int32_t>(token);
    if (vocabulary_.joins_any && static_cast<int32_t>(token) != vocabulary_.end_of_text) words_[bytes] = static_cast<int32_t>(token);
  }
}

void BytePairTokenizer::encode(std::string_view text, const Sink& sink) const {
  constexpr size_t kPiece = 4096;
  WordCache cache(text.size());
  std::vector<int32_t> tokens;
  const auto encode_one = [this](std::string_view word, std::vector<int32_t>& into) { encode_word(word, into); };
  for (size_t at = 0; at < text.size();) {
    const std::string_view word = text.substr(at, word_length(text.substr(at, kLongestWord), 0));
    cache.append(word, tokens, encode_one);
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
  const size_t from = tokens.size();
  for (const char byte : word) tokens.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
  merges_.apply(tokens, from);
}

void BytePairTokenizer::decode(std::span<const int32_t> tokens, std::string& text, TextPart) const {
  for (const int32_t token : tokens) text += vocabulary_.tokens[static_cast<size_t>(token)];
}

}  // namespace einc
