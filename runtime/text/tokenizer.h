// SPDX-License-Identifier: Apache-2.0
// Text as numbers and back. Bytes, characters and GPT-2's byte pairs give back the very bytes that were encoded; vocabularies of
// sentencepiece and tokenizers may normalize a text first.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace einc {

// What tokens to decode are: the start of a text, where some vocabularies drop a space, or what follows it.
enum class TextPart : uint8_t { start, middle };

class Tokenizer {
 public:
  using Sink = std::function<void(std::span<const int32_t>)>;

  Tokenizer() = default;
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Tokens are 0 ... size() - 1.
  virtual int32_t size() const = 0;
  // The tokens of a text, in pieces. Throws RuntimeFailure (data): a character that the vocabulary lacks, with its byte.
  virtual void encode(std::string_view text, const Sink& sink) const = 0;
  // Appends the bytes of tokens, each of them below size().
  virtual void decode(std::span<const int32_t> tokens, std::string& text, TextPart part) const = 0;

  std::vector<int32_t> encode(std::string_view text) const;
  std::string decode(std::span<const int32_t> tokens) const;
};

enum class TokenizerKind : uint8_t { bytes, characters, gpt2, sentencepiece, hugging_face };

std::string_view to_string(TokenizerKind kind);

// Tokens are bytes: 256 of them.
std::unique_ptr<Tokenizer> byte_tokenizer();

struct VocabularyFiles {
  // characters: what save_characters wrote; gpt2: encoder.json (or vocab.json) or ranks as tiktoken keeps them; sentencepiece: a .model;
  // hugging_face: a tokenizer.json.
  std::string vocabulary;
  // GPT-2's vocab.bpe (or merges.txt), for encoder.json; empty: a file of one of these names beside it.
  std::string merges;
};

// Of files that a vocabulary was given by; of the kind that the file says when none is. Throws RuntimeFailure: data with the byte or line,
// or resource.
std::unique_ptr<Tokenizer> open_tokenizer(const VocabularyFiles& files, std::optional<TokenizerKind> kind = std::nullopt);

}  // namespace einc
