// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/vocabulary.h"

#include "compiler/driver/command_line.h"

namespace einc {

void add_vocabulary_options(CLI::App& app, VocabularyRequest& request) {
  app.add_option("--kind", request.kind,
                 "what a token is: a byte (bytes, when there is no --vocab), a character (chars), or GPT-2's byte pairs (gpt2)")
      ->check(one_of({"bytes", "chars", "gpt2"}));
  app.add_option(
      "--vocab", request.files.vocabulary,
      "the vocabulary: chars.json as tokenize writes it, GPT-2's encoder.json (vocab.json), or its ranks as tiktoken keeps them");
  app.add_option("--merges", request.files.merges, "vocab.bpe (merges.txt) for encoder.json; without: one of these names beside it");
}

std::optional<TokenizerKind> kind_of(const VocabularyRequest& request) {
  for (const TokenizerKind kind : {TokenizerKind::bytes, TokenizerKind::characters, TokenizerKind::gpt2})
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
  if (!request.files.merges.empty() && (!has_vocabulary || kind == TokenizerKind::characters))
    return "--merges goes with --vocab encoder.json";
  return std::nullopt;
}

}  // namespace einc
