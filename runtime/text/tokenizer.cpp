// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/tokenizer.h"

#include <algorithm>
#include <array>

#include "runtime/text/byte_pairs.h"
#include "runtime/text/characters.h"
#include "runtime/text/hugging_face.h"
#include "runtime/text/sentencepiece.h"
#include "runtime/text/vocabulary.h"

namespace einc {
namespace {

class ByteTokenizer : public Tokenizer {
 public:
  int32_t size() const override { return 256; }
  void encode(std::string_view text, const Sink& sink) const override {
    std::array<int32_t, 4096> tokens;
    for (size_t at = 0; at < text.size(); at += tokens.size()) {
      const std::string_view piece = text.substr(at, tokens.size());
      std::transform(piece.begin(), piece.end(), tokens.begin(), [](char c) { return static_cast<unsigned char>(c); });
      sink(std::span(tokens).first(piece.size()));
    }
  }
  void decode(std::span<const int32_t> tokens, std::string& text, TextPart) const override {
    for (const int32_t token : tokens) text += static_cast<char>(token);
  }
};

}  // namespace

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> tokens;
  encode(text, [&](std::span<const int32_t> piece) { tokens.insert(tokens.end(), piece.begin(), piece.end()); });
  return tokens;
}

std::string Tokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  decode(tokens, text, TextPart::start);
  return text;
}

std::string_view to_string(TokenizerKind kind) {
  switch (kind) {
    case TokenizerKind::bytes:
      return "bytes";
    case TokenizerKind::characters:
      return "chars";
    case TokenizerKind::gpt2:
      return "gpt2";
    case TokenizerKind::sentencepiece:
      return "sentencepiece";
    case TokenizerKind::hugging_face:
      return "huggingface";
  }
  return "";
}

std::unique_ptr<Tokenizer> byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::unique_ptr<Tokenizer> open_tokenizer(const VocabularyFiles& files, std::optional<TokenizerKind> kind) {
  if (kind == TokenizerKind::bytes) return byte_tokenizer();
  switch (kind ? *kind : kind_of_file(files.vocabulary)) {
    case TokenizerKind::bytes:
      break;
    case TokenizerKind::characters:
      return std::make_unique<CharacterTokenizer>(read_characters(files.vocabulary));
    case TokenizerKind::gpt2:
      return std::make_unique<BytePairTokenizer>(read_byte_pairs(files));
    case TokenizerKind::sentencepiece:
      return std::make_unique<SentencePieceTokenizer>(parse_sentencepiece(read_vocabulary(files.vocabulary), files.vocabulary));
    case TokenizerKind::hugging_face:
      return read_hugging_face(files.vocabulary);
  }
  return byte_tokenizer();
}

}  // namespace einc
