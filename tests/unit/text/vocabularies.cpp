// SPDX-License-Identifier: Apache-2.0
// Vocabularies of sentencepiece and tokenizers give the tokens, and the texts of tokens, that these libraries give.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "../data/test_files.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/vocabulary.h"

using namespace einc;

namespace {

using Tokens = std::vector<int32_t>;
const std::string kLibraryFiles = std::string(EINC_SOURCE_DIR) + "/tests/unit/text/vocabularies/";  // make.py there says what these are

std::string content_of(const std::string& name) {
  std::ifstream in(kLibraryFiles + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void holds(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CHECK(text.find(part) != std::string::npos);
}

std::string library_failure(const std::string& vocabulary, std::optional<TokenizerKind> kind = std::nullopt,
                            const std::string& text = "a") {
  const TestFile file("vocabulary", vocabulary);
  return failure_of([&] { open_tokenizer({file.path(), ""}, kind)->encode(text); });
}

// A field of a message in protobuf's encoding; fewer than 128 bytes.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string field(int number, int value) { return {static_cast<char>((number & 15) << 3), static_cast<char>(value)}; }
std::string piece(const std::string& text, int kind) { return field(1, field(1, text) + field(3, kind)); }
std::string sentencepiece_failure(const std::string& model) { return library_failure(model, TokenizerKind::sentencepiece); }

std::string json_of(const std::string& parts, const std::string& vocabulary = R"({"a":0,"b":1,"ab":2})",
                    const std::string& merges = R"(["a b"])") {
  return fmt::format(R"({{"model":{{"type":"BPE","vocab":{},"merges":{}}}{}}})", vocabulary, merges, parts);
}

// In base64: the size of the trie, 128 units of it, and the replacement "\xFF\0". The root's offset is 1, so `a` stands at 1 ^ 'a', with
// an offset to its value at 64.
std::string table_of_bad_text() {
  std::vector<uint32_t> words(129);
  words[0] = 128 * 4;
  const auto unit = [&](size_t index) -> uint32_t& { return words[1 + index]; };
  unit(0) = 1 << 10;
  unit(1 ^ 'a') = ((1 ^ 'a') ^ 64) << 10 | 1 << 8 | 'a';
  unit(64) = 0x80000000u;
  std::string bytes;
  for (const uint32_t word : words)
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(word >> shift & 0xFF);
  bytes += std::string("\xFF\0", 2);
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  while (bytes.size() % 3 != 0) bytes += '\0';
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k) three = three << 8 | static_cast<unsigned char>(bytes[i + k]);
    for (int shift = 18; shift >= 0; shift -= 6) text += kDigits[three >> shift & 63];
  }
  return text;
}

}  // namespace

TEST_CASE("tokens and texts are those of sentencepiece and of tokenizers") {
  const nlohmann::json cases = nlohmann::json::parse(content_of("cases.json"));
  REQUIRE(cases.size() > 100);
  for (const auto& [name, ignored] : cases[0].items()) {
    if (name == "text") continue;
    CAPTURE(name);
    const auto tokenizer = open_tokenizer({kLibraryFiles + name, ""});
    for (const nlohmann::json& one : cases) {
      const std::string text = one.at("text");
      CAPTURE(text);
      const Tokens expected = one.at(name).at(0);
      CHECK(tokenizer->encode(text) == expected);
      CHECK(tokenizer->decode(expected) == one.at(name).at(1).get<std::string>());
      CHECK(std::all_of(expected.begin(), expected.end(), [&](int32_t token) { return token < tokenizer->size(); }));
    }
  }
}

TEST_CASE("files show of what kind they are") {
  CHECK(kind_of_file(kLibraryFiles + "unigram.model") == TokenizerKind::sentencepiece);
  CHECK(kind_of_file(kLibraryFiles + "byte_level.json") == TokenizerKind::hugging_face);
  CHECK(kind_of_file(kLibraryFiles + "../gpt2/vocab.json") == TokenizerKind::gpt2);
  CHECK(kind_of_file(kLibraryFiles + "../gpt2/ranks.tiktoken") == TokenizerKind::gpt2);
  const TestFile named("vocab.json", "{\"model\": 3, \"\\\"model\\\": {\": 4}");  // an encoder.json with such tokens
  CHECK(kind_of_file(named.path()) == TokenizerKind::gpt2);
}

TEST_CASE("tokens decode the same in pieces as at once") {
  for (const char* name : {"unigram.model", "pairs_bytes.model", "byte_fallback.json", "unigram.json", "byte_level.json", "words.json"}) {
    CAPTURE(name);
    const auto tokenizer = open_tokenizer({kLibraryFiles + name, ""});
    const Tokens tokens = tokenizer->encode("the work — naïve 日本語 is here");
    std::string text;
    for (size_t i = 0; i < tokens.size(); ++i)
      tokenizer->decode(std::span(tokens).subspan(i, 1), text, i == 0 ? TextPart::start : TextPart::middle);
    CHECK(text == tokenizer->decode(tokens));
  }
}

TEST_CASE("long texts go through in pieces, in linear time") {
  std::string text;
  while (text.size() < 1'000'000) text += text.size() % 3 == 0 ? "the work " : "information\n";
  for (const char* name : {"unigram_bytes.model", "pairs_bytes.model", "byte_fallback.json", "split_pattern.json"}) {
    CAPTURE(name);
    const auto tokenizer = open_tokenizer({kLibraryFiles + name, ""});
    const Tokens tokens = tokenizer->encode(text);
    const Tokens start = tokenizer->encode(text.substr(0, 10'000));
    CHECK(std::equal(start.begin(), start.end() - 10, tokens.begin()));
    CHECK(tokenizer->decode(tokens) == text);
    CHECK(tokenizer->decode(tokenizer->encode(std::string(1'000'000, 'x'))) == std::string(1'000'000, 'x'));
  }
}

TEST_CASE("hostile models of sentencepiece are refused with a reason") {
  const std::string unknown = piece("<unk>", 2), trainer = field(2, field(3, 2));
  const std::string whole = unknown + piece("a", 1);
  CHECK(sentencepiece_failure(whole).empty());
  holds(sentencepiece_failure(""), "vocabulary: no piece is the unknown one");
  holds(sentencepiece_failure(whole + "\x0A\x7F"), "not a model of sentencepiece");
  holds(sentencepiece_failure(whole + "\x0B"), "not a model of sentencepiece");
  holds(sentencepiece_failure(whole + std::string("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 12)), "not a model of sentencepiece");
  holds(sentencepiece_failure(whole + piece("a", 1)), "the piece 'a' is there twice");
  holds(sentencepiece_failure(whole + piece("b", 2)), "pieces 0 and 2 are both the unknown one");
  holds(sentencepiece_failure(whole + piece("", 1)), "piece 2 is empty");
  holds(sentencepiece_failure(whole + piece("b", 7)), "piece 2 is of kind 7; there are 1 to 6");
  holds(sentencepiece_failure(whole + field(1, field(1, "b") + std::string("\x15\0\0\x80\x7F", 5))), "the score of piece 2 is not finite");
  holds(sentencepiece_failure(whole + field(2, field(3, 3))), "einc reads unigram and byte-pair models");
  holds(sentencepiece_failure(whole + trainer + piece("b", 5)), "piece 2 is unused");
  holds(sentencepiece_failure(whole + field(2, std::string("\x98\x02\x01", 3))), "no piece is the byte <0x00>");
  holds(sentencepiece_failure(whole + field(3, field(2, "abcdefgh"))), "its table of replacements is damaged");
  holds(sentencepiece_failure(whole + field(5, field(2, "abcdefgh"))), "(a denormalizer), which einc does not");
  const std::string real = content_of("unigram.model");
  for (size_t cut = 0; cut < real.size(); cut += 7) library_failure(real.substr(0, cut), TokenizerKind::sentencepiece, "the naïve text");
  for (size_t at = 0; at < real.size(); at += 3) {
    std::string damaged = real;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    library_failure(damaged, TokenizerKind::sentencepiece, "the e\xCC\x81 naïve　text");
  }
}

TEST_CASE("what einc does not understand of a tokenizer.json is named") {
  CHECK(library_failure(json_of("")).empty());
  holds(library_failure(R"({"model": {"type": "WordPiece", "vocab": {}}})"),
        "einc cannot use this tokenizer: a model of type 'WordPiece'; einc reads BPE and Unigram");
  holds(library_failure(json_of(R"(,"normalizer":{"type":"BertNormalizer"})")), "a normalizer of type 'BertNormalizer'");
  holds(library_failure(json_of(R"(,"pre_tokenizer":{"type":"UnicodeScripts"})")), "a pre-tokenizer of type 'UnicodeScripts'");
  holds(library_failure(json_of(R"(,"pre_tokenizer":{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"})")), "the pattern '('");
  holds(library_failure(json_of(R"(,"pre_tokenizer":{"type":"Split","pattern":{"Regex":"a"},"behavior":"Odd"})")), "the behavior 'Odd'");
  holds(library_failure(json_of(R"(,"decoder":{"type":"CTC"})")), "a decoder of type 'CTC'");
  holds(library_failure(json_of(R"(,"normalizer":{"type":"Precompiled","precompiled_charsmap":"AAAA"})")),
        "precompiled_charsmap) is damaged");
  holds(library_failure(json_of(R"(,"added_tokens":[{"id":3,"content":"x","single_word":true}])")), "found as a single word");
  holds(library_failure(json_of(R"(,"added_tokens":[{"id":99999999,"content":"x"}])")), "is number 99999999 of a vocabulary of 3");
  holds(library_failure(json_of(R"(,"added_tokens":[{"id":1,"content":"x"}])")), "token 1 is 'b' and 'x'");
  holds(library_failure(json_of(R"(,"added_tokens":[{"content":"x"}])")), "the added token 'x' has no number");
  holds(library_failure(json_of("", R"({"a":0,"b":0})")), "token 0 is there twice");
  holds(library_failure(json_of("", R"({"a":4000000000})")), "'a' is not the number of a token");
  holds(library_failure(json_of("", R"({"a":0,"b":1})")), "what a merge makes, 'ab' is no token");
  holds(library_failure(json_of("", R"({"a":0})", "[1]")), "merge 0 is not two tokens");
  holds(library_failure(json_of("", "3")), "without its 'vocab'");
  holds(library_failure(R"({"model": {"type": "Unigram", "vocab": [["a", "b"]]}})"), "token 0 is not a piece and its score");
  holds(library_failure(R"({"model": {"type": "Unigram", "unk_id": 3, "vocab": [["a", -1]]}})"), "its 'unk_id' is no token");
  holds(library_failure(R"({"model": {"type": "Unigram", "vocab": [["a", -1]]}})", std::nullopt, "b"),
        "the vocabulary has no 'b', and no token for what is unknown");
  holds(library_failure(json_of(""), std::nullopt, "ab\xFF"), "byte 2 of the text: not UTF-8");
  // A table that replaces `a` by a byte which is not UTF-8: units of the root, of the node for `a`, and of its value.
  holds(library_failure(json_of(R"(,"normalizer":{"type":"Precompiled","precompiled_charsmap":")" + table_of_bad_text() + "\"}")),
        "make text that is not UTF-8");
  holds(library_failure(json_of(R"(,"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a+)+$"},"behavior":"Isolated"})"), std::nullopt,
                        std::string(40, 'a') + "b"),
        "a pattern of the tokenizer takes too many steps on this text");
}
