// SPDX-License-Identifier: Apache-2.0
// What a tokenizer.json says is done with a text before its model sees it: normalizers, string to string, and pre-tokenizers, which
// divide it into the words that the model encodes one by one. Texts are UTF-8. As the tokenizers library does it.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace einc {

struct Normalizer {
  std::function<std::string(std::string_view)> apply;
  bool strips_start = false;  // white space where a text begins: what follows no longer stands at the start
};

// A word, and whether it stands at the start of the whole text.
struct TextPiece {
  std::string_view text;
  bool first;
};
using PieceSink = std::function<void(TextPiece)>;
using PreTokenizer = std::function<void(TextPiece, const PieceSink&)>;

// Of the object of that name; null gives none. Sequences are taken apart. Throws std::invalid_argument with what is not understood.
std::vector<Normalizer> read_normalizers(const nlohmann::json& object);
std::vector<PreTokenizer> read_pre_tokenizers(const nlohmann::json& object);

}  // namespace einc
