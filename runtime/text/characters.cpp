// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/characters.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/failure.h"
#include "runtime/base/printable.h"
#include "runtime/data/file.h"
#include "runtime/text/utf8.h"

namespace einc {
namespace {

[[noreturn]] void fail_at(size_t byte, const std::string& what) {
  throw RuntimeFailure(FailureKind::data, fmt::format("byte {} of the text: {}", byte, what));
}

CodePoint character_at(std::string_view text, size_t at) {
  const CodePoint point = code_point_at(text, at);
  if (point.value < 0) fail_at(at, "not UTF-8; --kind bytes takes any text");
  return point;
}

}  // namespace

CharacterTokenizer::CharacterTokenizer(std::vector<int32_t> characters) : characters_(std::move(characters)) {
  std::fill(std::begin(ascii_), std::end(ascii_), -1);
  for (size_t i = 0; i < characters_.size(); ++i) {
    const int32_t character = characters_[i], token = static_cast<int32_t>(i);
    if (character < 128)
      ascii_[character] = token;
    else
      others_[character] = token;
  }
}

int32_t CharacterTokenizer::find(int32_t character) const {
  if (character < 128) return ascii_[character];
  const auto found = others_.find(character);
  return found == others_.end() ? -1 : found->second;
}

void CharacterTokenizer::encode(std::string_view text, const Sink& sink) const {
  constexpr size_t kPiece = 4096;
  std::vector<int32_t> tokens;
  tokens.reserve(kPiece);
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = character_at(text, at);
    const int32_t token = find(point.value);
    if (token < 0) fail_at(at, fmt::format("the vocabulary has no '{}'", printable(text.substr(at, point.length))));
    tokens.push_back(token);
    at += point.length;
    if (tokens.size() < kPiece) continue;
    sink(tokens);
    tokens.clear();
  }
  if (!tokens.empty()) sink(tokens);
}

void CharacterTokenizer::decode(std::span<const int32_t> tokens, std::string& text, TextPart) const {
  for (const int32_t token : tokens) append_code_point(text, characters_[static_cast<size_t>(token)]);
}

std::vector<int32_t> characters_of(std::string_view text) {
  std::vector<bool> seen(0x110000);
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = character_at(text, at);
    seen[static_cast<size_t>(point.value)] = true;
    at += point.length;
  }
  std::vector<int32_t> characters;
  for (size_t value = 0; value < seen.size(); ++value)
    if (seen[value]) characters.push_back(static_cast<int32_t>(value));
  return characters;
}

void save_characters(const std::string& path, const std::vector<int32_t>& characters) {
  std::string joined;
  for (const int32_t character : characters) append_code_point(joined, character);
  const std::string text =
      fmt::format("{{\"kind\": \"characters\", \"characters\": {}}}\n", nlohmann::json(joined).dump(-1, ' ', /*ensure_ascii=*/false));
  const std::span<const std::byte> piece = std::as_bytes(std::span(text));
  write_file(path, std::span(&piece, 1));
}

}  // namespace einc
