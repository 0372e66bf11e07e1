// SPDX-License-Identifier: Apache-2.0
// The options that say what a token is.
#pragma once
#include <optional>
#include <string>

#include "compiler/driver/command_line.h"
#include "runtime/text/tokenizer.h"

namespace einc {

struct VocabularyRequest {
  std::string kind;
  VocabularyFiles files;
};

void add_vocabulary_options(CLI::App& app, VocabularyRequest& request);

// nullopt: the file of the vocabulary says it.
std::optional<TokenizerKind> kind_of(const VocabularyRequest& request);

// A message when the options cannot go together.
std::optional<std::string> contradiction(const VocabularyRequest& request);

}  // namespace einc
