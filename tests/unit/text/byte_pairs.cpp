// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/byte_pairs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "../data/test_files.h"

using namespace einc;

namespace {

const std::string kFolder = std::string(EINC_SOURCE_DIR) + "/tests/unit/text/gpt2/";  // make.py there says what these are
const VocabularyFiles kEncoder{kFolder + "vocab.json", ""}, kRanks{kFolder + "ranks.tiktoken", ""};

// encoder.json with one token for each byte, and what else is asked for.
std::string encoder(const std::string& more) {
  std::string text = "{";
  int number = 0, hidden = 0x100;
  const auto add = [&](int character) {
    text += fmt::format("{}\"\\u{:04x}\": {}", number == 0 ? "" : ", ", character, number);
    ++number;
  };
  for (int byte = 0; byte < 256; ++byte) add((byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD) ? byte : hidden++);
  return text + more + "}";
}

std::string failure(const std::string& vocabulary, const std::string& merges = "") {
  const TestFile first("vocab.json", vocabulary), second("merges.txt", merges);
  return failure_of([&] { open_tokenizer({first.path(), ""}, TokenizerKind::gpt2); });
}

void has(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CHECK(text.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("tokens are those of the tokenizers library and of tiktoken") {
  std::ifstream file(kFolder + "cases.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  REQUIRE(cases.size() > 200);
  const auto merging = open_tokenizer(kEncoder), ranking = open_tokenizer(kRanks);
  CHECK(merging->size() == 900);
  CHECK(ranking->size() == 901);  // with <|endoftext|>
  for (const nlohmann::json& one : cases) {
    const std::string text = one.at("text");
    CAPTURE(text);
    CHECK(merging->encode(text) == one.at("merges").get<std::vector<int32_t>>());
    CHECK(ranking->encode(text) == one.at("ranks").get<std::vector<int32_t>>());
    CHECK(merging->decode(merging->encode(text)) == text);
    CHECK(ranking->decode(ranking->encode(text)) == text);
  }
}

TEST_CASE("any bytes come back") {
  std::mt19937 random(3);
  const auto merging = open_tokenizer(kEncoder), ranking = open_tokenizer(kRanks);
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (size_t length = random() % 200; text.size() < length;)
      text += random() % 2 == 0 ? static_cast<char>(random()) : " theaieu's\n"[random() % 11];
    CAPTURE(text);
    CHECK(merging->decode(merging->encode(text)) == text);
    CHECK(ranking->decode(ranking->encode(text)) == text);
  }
}

TEST_CASE("long words are joined as short ones are") {
  // Words of 1 to 64 bytes are joined one way, longer ones another: the tokens of a repeated word do not change with its length.
  const auto tokenizer = open_tokenizer(kEncoder);
  for (const std::string unit : {"a", "he", "the", "ee"}) {
    std::string text;
    while (text.size() < 60) text += unit;
    std::vector<int32_t> tokens = tokenizer->encode(text);
    while (text.size() < 200) {
      const std::vector<int32_t> shorter = tokens;
      text += unit;
      tokens = tokenizer->encode(text);
      const size_t kept = shorter.size() - std::min<size_t>(shorter.size(), 4);  // but for the end
      CHECK(std::equal(shorter.begin(), shorter.begin() + static_cast<int64_t>(kept), tokens.begin()));
    }
  }
}

TEST_CASE("a word of millions of letters takes no quadratic time, and comes back") {
  const auto tokenizer = open_tokenizer(kEncoder);
  std::string letters(3'000'000, 'a'), signs;
  for (size_t i = 0; i < letters.size(); i += 3) letters[i] = "theiou"[i % 6];
  while (signs.size() < 2'000'000) signs += "日‽";  // whose bytes the pieces of a long word do not keep together
  for (const std::string& text : {letters, signs, std::string(3'000'000, ' ') + "x"})
    CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
}

TEST_CASE("the end of a text is a token that no text makes") {
  const auto ranking = open_tokenizer(kRanks);
  CHECK(ranking->decode(std::vector<int32_t>{900}) == "<|endoftext|>");
  CHECK(ranking->encode("<|endoftext|>").size() > 1);
  const TestFile vocabulary("vocab.json", encoder(", \"<|endoftext|>\": 256")), merges("merges.txt", "");
  const auto merging = open_tokenizer({vocabulary.path(), merges.path()});
  CHECK(merging->size() == 257);
  CHECK(merging->decode(std::vector<int32_t>{256}) == "<|endoftext|>");
  CHECK(merging->encode("<|endoftext|>").size() == 13);
}

TEST_CASE("the order of merges decides, not their tokens' numbers") {
  const TestFile vocabulary("vocab.json", encoder(", \"ab\": 256, \"bc\": 257, \"abc\": 258")),
      merges("merges.txt", "#version: 0.2\nb c\na b\nab c\n");
  const auto tokenizer = open_tokenizer({vocabulary.path(), ""});  // merges.txt is found beside it
  CHECK(tokenizer->encode("abc") == std::vector<int32_t>{'a', 257});
  CHECK(tokenizer->encode("ab") == std::vector<int32_t>{256});
}

TEST_CASE("hostile vocabularies of byte pairs are refused with a reason") {
  has(failure(encoder(", \"a b\": 256")), "vocab.json: token 'a b' is not in the alphabet");
  has(failure(encoder(", \"ab\": 255")), "token 255 is there twice");
  has(failure(encoder(", \"ab\": 258")), "token 258 of 257: they are not numbered from 0 on");
  has(failure(encoder(", \"ab\": 18446744073709551615")), "token 18446744073709551615 of 257");
  has(failure(encoder(", \"ab\": 256, \"ab\": 257")), "the key 'ab' is there twice");
  has(failure(encoder(", \"ab\": -1")), "'ab' is not the number of a token");
  has(failure(encoder(", \"ab\": \"256\"")), "'ab' is not the number of a token");
  has(failure(encoder(", \"\": 256")), "token 256 has 0 bytes; 1 to 256 are possible");
  has(failure(encoder(", \"" + std::string(257, 'a') + "\": 256")), "token 256 has 257 bytes");
  has(failure("{}"), "no token is the single byte 0x00");
  has(failure("{\"a\": 0, \"b\": 1}"), "no token is the single byte 0x00");
  has(failure(std::string(1 << 20, '{')), "not JSON");
  has(failure(encoder(""), "a b"), "merges.txt: line 1: 'ab' is no token");
  has(failure(encoder(", \"ab\": 256"), "\na b\nab\n"), "merges.txt: line 3: not two tokens and a space between them");
  has(failure(encoder(", \"ab\": 256"), "a b c"), "not two tokens");
  has(failure("IQ== 0\nIg== x\n"), "vocab.json: line 2: not a token in base64 and its rank");
  has(failure("IQ== 0\nIQ== 1\n"), "tokens 0 and 1 are the same");
  has(failure("I 0\n"), "line 1: not a token in base64");
  has(failure("I=== 0\n"), "line 1: not a token in base64");
  has(failure("IQ== 9999999999\n"), "line 1: not a token in base64");
  has(failure("IQ== -1\n"), "line 1: not a token in base64");
  has(failure(""), "no token is the single byte 0x00");
  const TestFile large("large.json", "");
  std::filesystem::resize_file(large.path(), kMaxVocabularyFile + 1);
  has(failure_of([&] { open_tokenizer({large.path(), ""}); }), "a vocabulary of 67108865 bytes is above the limit of 67108864");
  const TestFile alone("alone.json", encoder(""));
  has(failure_of([&] { open_tokenizer({alone.path(), ""}); }), "alone.json: its merges are missing: name them by --merges");
  has(failure_of([&] { open_tokenizer({alone.path(), "/nowhere/m"}); }), "/nowhere/m: cannot read");
  has(failure_of([&] { open_tokenizer({kRanks.vocabulary, "m"}); }), "--merges goes with an encoder.json");
}
