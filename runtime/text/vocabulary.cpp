// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <unordered_map>

#include "runtime/base/ascii.h"
#include "runtime/data/file.h"
#include "runtime/data/strict_json.h"
#include "runtime/text/base64.h"
#include "runtime/text/byte_alphabet.h"
#include "runtime/text/sentencepiece_file.h"
#include "runtime/text/utf8.h"

namespace einc {
namespace {

constexpr size_t kMaxTokenBytes = 256;
constexpr std::string_view kEndOfText = "<|endoftext|>";
using TokenNumbers = std::unordered_map<std::string_view, int32_t>;

class Lines {
 public:
  Lines(std::string path, std::string_view text) : path_(std::move(path)), text_(text) {}

  // The next line without its end; nullopt: there is none.
  std::optional<std::string_view> next() {
    if (at_ >= text_.size()) return std::nullopt;
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view line = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++number_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw RuntimeFailure(FailureKind::data, fmt::format("{}: line {}: {}", printable(path_), number_, what));
  }

 private:
  std::string path_;
  std::string_view text_;
  size_t at_ = 0, number_ = 0;
};

[[noreturn]] void fail_in(const std::string& path, const std::string& what) {
  throw RuntimeFailure(FailureKind::data, fmt::format("{}: {}", printable(path), what));
}

// Token by number, from (bytes, number) pairs that are all different and numbered 0, 1, ... in any order.
std::vector<std::string> by_number(const std::string& path, std::vector<std::pair<std::string, uint64_t>> entries) {
  std::vector<std::string> tokens(entries.size());
  std::vector<bool> given(entries.size());
  for (auto& [bytes, number] : entries) {
    if (number >= entries.size()) fail_in(path, fmt::format("token {} of {}: they are not numbered from 0 on", number, entries.size()));
    if (given[number]) fail_in(path, fmt::format("token {} is there twice", number));
    if (bytes.empty() || bytes.size() > kMaxTokenBytes)
      fail_in(path, fmt::format("token {} has {} bytes; 1 to {} are possible", number, bytes.size(), kMaxTokenBytes));
    given[number] = true;
    tokens[number] = std::move(bytes);
  }
  return tokens;
}

TokenNumbers numbers_of(const std::string& path, const std::vector<std::string>& tokens) {
  TokenNumbers numbers;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (const auto [other, fresh] = numbers.emplace(tokens[i], static_cast<int32_t>(i)); !fresh)
      fail_in(path, fmt::format("tokens {} and {} are the same", other->second, i));
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (numbers.count(std::string_view(&c, 1)) == 0) fail_in(path, fmt::format("no token is the single byte {:#04x}", byte));
  }
  return numbers;
}

BytePairVocabulary read_ranks(const std::string& path, const std::string& text) {
  Lines lines(path, text);
  std::vector<std::pair<std::string, uint64_t>> entries;
  while (const auto line = lines.next()) {
    if (line->empty()) continue;
    const size_t space = line->find(' ');
    std::optional<std::string> bytes = space == std::string_view::npos ? std::nullopt : decode_base64(line->substr(0, space));
    const std::string_view digits = space == std::string_view::npos ? "" : line->substr(space + 1);
    if (!bytes || digits.size() > 9 || !is_digits(digits))
      lines.fail("not a token in base64 and its rank (merges are read beside encoder.json or vocab.json: name that)");
    entries.emplace_back(std::move(*bytes), std::stoull(std::string(digits)));
  }
  BytePairVocabulary vocabulary;
  vocabulary.joins_any = true;
  vocabulary.tokens = by_number(path, std::move(entries));
  const TokenNumbers numbers = numbers_of(path, vocabulary.tokens);
  for (size_t token = 0; token < vocabulary.tokens.size(); ++token) {
    const std::string_view bytes = vocabulary.tokens[token];
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
      const auto left = numbers.find(bytes.substr(0, cut));
      if (left == numbers.end()) continue;
      const auto right = numbers.find(bytes.substr(cut));
      if (right != numbers.end()) vocabulary.merges.push_back({left->second, right->second, static_cast<int32_t>(token)});
    }
  }
  vocabulary.end_of_text = static_cast<int32_t>(vocabulary.tokens.size());
  vocabulary.tokens.emplace_back(kEndOfText);
  return vocabulary;
}

// A file of one of the usual names in the folder of the other.
std::string find_merges(const std::string& vocabulary) {
  for (const char* name : {"vocab.bpe", "merges.txt"}) {
    const std::filesystem::path path = std::filesystem::path(vocabulary).parent_path() / name;
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path.string();
  }
  fail_in(vocabulary, "its merges are missing: name them by --merges, or put vocab.bpe or merges.txt beside it");
}

nlohmann::json parse_object(const std::string& path, const std::string& text) {
  nlohmann::json object = parse_strict_json(text, path, {text.size(), 1});
  if (!object.is_object()) fail_in(path, "not an object of JSON");
  return object;
}

BytePairVocabulary read_encoder(const std::string& path, const std::string& text, const std::string& merges_path) {
  BytePairVocabulary vocabulary;
  std::vector<std::pair<std::string, uint64_t>> entries;
  const nlohmann::json object = parse_object(path, text);
  for (const auto& [name, value] : object.items()) {
    if (!value.is_number_unsigned()) fail_in(path, fmt::format("'{}' is not the number of a token", printable(name)));
    std::optional<std::string> bytes = bytes_of_name(name);
    if (!bytes) fail_in(path, fmt::format("token '{}' is not in the alphabet of GPT-2's vocabulary", printable(name)));
    entries.emplace_back(std::move(*bytes), value.get<uint64_t>());
  }
  vocabulary.tokens = by_number(path, std::move(entries));
  const TokenNumbers numbers = numbers_of(path, vocabulary.tokens);
  if (const auto end = numbers.find(kEndOfText); end != numbers.end()) vocabulary.end_of_text = end->second;

  const std::string merges = read_vocabulary(merges_path);
  Lines lines(merges_path, merges);
  const auto number_of = [&](std::string_view bytes) {
    const auto found = numbers.find(bytes);
    if (found == numbers.end()) lines.fail(fmt::format("'{}' is no token", printable(bytes)));
    return found->second;
  };
  for (bool first = true; const auto line = lines.next(); first = false) {
    if (line->empty() || (first && line->starts_with("#version"))) continue;
    const size_t space = line->find(' ');
    const std::optional<std::string> left = space == std::string_view::npos ? std::nullopt : bytes_of_name(line->substr(0, space));
    const std::optional<std::string> right = left ? bytes_of_name(line->substr(space + 1)) : std::nullopt;
    if (!right) lines.fail("not two tokens and a space between them");
    vocabulary.merges.push_back({number_of(*left), number_of(*right), number_of(*left + *right)});
  }
  return vocabulary;
}

}  // namespace

std::string read_vocabulary(const std::string& path) {
  const InputFile file(path);
  if (file.size() > kMaxVocabularyFile)
    fail_in(path, fmt::format("a vocabulary of {} bytes is above the limit of {}", file.size(), kMaxVocabularyFile));
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

TokenizerKind kind_of_file(const std::string& path) {
  constexpr std::string_view kCharacters = "{\"kind\": \"characters\"", kModel = "\"model\"";
  const std::string text = read_vocabulary(path);
  if (text.starts_with(kCharacters)) return TokenizerKind::characters;
  if (is_sentencepiece(text)) return TokenizerKind::sentencepiece;
  // tokenizer.json has an object "model"; what an encoder.json names so is a number.
  for (size_t at = text.starts_with('{') ? text.find(kModel) : std::string::npos; at != std::string::npos; at = text.find(kModel, at + 1)) {
    at = text.find_first_not_of(" \t\r\n:", at + kModel.size());
    if (at == std::string::npos) break;
    if (text[at] == '{') return TokenizerKind::hugging_face;
  }
  return TokenizerKind::gpt2;
}

std::vector<int32_t> read_characters(const std::string& path) {
  const std::string text = read_vocabulary(path);
  const nlohmann::json object = parse_object(path, text);
  const auto member = [&](std::string_view name) -> const std::string* {
    const auto found = object.find(name);
    return found == object.end() ? nullptr : found->get_ptr<const std::string*>();
  };
  const std::string *kind = member("kind"), *characters = member("characters");
  if (!kind || *kind != "characters" || !characters)
    fail_in(path, "not a vocabulary of characters as einc tokenize --kind chars writes it");
  std::vector<int32_t> list;
  std::vector<bool> seen(0x110000);
  for (size_t at = 0; at < characters->size();) {
    const CodePoint point = code_point_at(*characters, at);
    if (point.value < 0) fail_in(path, "its characters are not UTF-8");
    if (seen[static_cast<size_t>(point.value)])
      fail_in(path, fmt::format("the character '{}' is there twice", printable(std::string_view(*characters).substr(at, point.length))));
    seen[static_cast<size_t>(point.value)] = true;
    list.push_back(point.value);
    at += point.length;
  }
  return list;
}

BytePairVocabulary read_byte_pairs(const VocabularyFiles& files) {
  const std::string& path = files.vocabulary;
  const std::string text = read_vocabulary(path);
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string::npos || text[start] != '{') {
    if (!files.merges.empty()) fail_in(path, "--merges goes with an encoder.json, which this is not");
    return read_ranks(path, text);
  }
  return read_encoder(path, text, files.merges.empty() ? find_merges(path) : files.merges);
}

}  // namespace einc
