// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/vocabulary.h"

#include <fmt/format.h>

#include "compiler/driver/command_line.h"

namespace einc {

void add_vocabulary_options(CLI::App& app, VocabularyRequest& request) {
  app.add_option("--kind", request.kind,
                 "what a token is: a byte (bytes, when there is no --vocab), a character (chars), GPT-2's byte pairs (gpt2), or what the "
                 "file of another vocabulary says (sentencepiece, huggingface); by default, found from --vocab")
      ->check(one_of({"bytes", "chars", "gpt2", "sentencepiece", "huggingface"}));
  app.add_option(
      "--vocab", request.files.vocabulary,
      "the vocabulary: chars.json as tokenize writes it, GPT-2's encoder.json (vocab.json), its ranks as tiktoken keeps them, a .model of "
      "sentencepiece, or a tokenizer.json of Hugging Face");
  app.add_option("--merges", request.files.merges, "vocab.bpe (merges.txt) for encoder.json; by default, one of these beside it");
}

std::optional<TokenizerKind> kind_of(const VocabularyRequest& request) {
  for (const TokenizerKind kind :
       {TokenizerKind::bytes, TokenizerKind::characters, TokenizerKind::gpt2, TokenizerKind::sentencepiece, TokenizerKind::hugging_face})
    if (request.kind == to_string(kind)) return kind;
  if (request.files.vocabulary.empty()) return TokenizerKind::bytes;
  return std::nullopt;
}

std::optional<std::string> contradiction(const VocabularyRequest& request) {
  const std::optional<TokenizerKind> kind = kind_of(request);
  const bool has_vocabulary = !request.files.vocabulary.empty();
  if (kind == TokenizerKind::bytes && has_vocabulary) return "--kind bytes takes no --vocab";
  if (kind == TokenizerKind::gpt2 && !has_vocabulary)
    return "--kind gpt2 needs --vocab FILE: GPT-2's encoder.json with vocab.bpe beside it, or gpt2.tiktoken";
  if ((kind == TokenizerKind::sentencepiece || kind == TokenizerKind::hugging_face) && !has_vocabulary)
    return fmt::format("--kind {} needs --vocab FILE: {}", request.kind,
                       kind == TokenizerKind::sentencepiece ? "a .model of sentencepiece" : "a tokenizer.json");
  if (!request.files.merges.empty() && (!has_vocabulary || kind == TokenizerKind::characters))
    return "--merges goes with --vocab encoder.json";
  return std::nullopt;
}

}  // namespace einc
