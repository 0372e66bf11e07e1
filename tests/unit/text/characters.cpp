// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/characters.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "../data/test_files.h"
#include "runtime/text/vocabulary.h"

using namespace einc;

namespace {

std::string characters_failure(const std::string& content) {
  const TestFile file("chars.json", content);
  return failure_of([&] { read_characters(file.path()); });
}

}  // namespace

TEST_CASE("characters are numbered in the order of their code points, as nanoGPT does") {
  const std::string text = "hello, wörld\n🙂é";
  const std::vector<int32_t> characters = characters_of(text);
  CHECK(characters == std::vector<int32_t>{'\n', ' ', ',', 'd', 'e', 'h', 'l', 'o', 'r', 'w', 0xE9, 0xF6, 0x1F642});
  const CharacterTokenizer tokenizer(characters);
  CHECK(tokenizer.size() == 13);
  CHECK(tokenizer.encode("hé🙂") == std::vector<int32_t>{5, 10, 12});
  CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
}

TEST_CASE("a vocabulary of characters comes back from its file") {
  const TestFile file("chars.json", "");
  const std::vector<int32_t> characters = characters_of("\"\\\n\t\x01 aé日🙂\x7F");
  save_characters(file.path(), characters);
  CHECK(kind_of_file(file.path()) == TokenizerKind::characters);
  CHECK(read_characters(file.path()) == characters);
  CHECK(open_tokenizer({file.path(), ""})->encode("日a") == std::vector<int32_t>{9, 6});
}

TEST_CASE("texts that a vocabulary of characters cannot take") {
  const CharacterTokenizer tokenizer({'a', 'b'});
  const auto encode = [&](const std::string& text) { return failure_of([&] { tokenizer.encode(text); }); };
  CHECK(encode("abc") == "byte 2 of the text: the vocabulary has no 'c'");
  CHECK(encode("a\xFF") == "byte 1 of the text: not UTF-8; --kind bytes takes any text");
  CHECK(failure_of([] { characters_of("ab\xC3"); }) == "byte 2 of the text: not UTF-8; --kind bytes takes any text");
}

TEST_CASE("hostile vocabularies of characters are refused with a reason") {
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(characters_failure(""), "chars.json: byte 0: not JSON");
  has(characters_failure("{\"kind\": \"characters\", \"characters\": \"ab"), "not JSON");
  has(characters_failure(std::string(100000, '[')), "JSON nests deeper than 1");
  has(characters_failure("{\"kind\": {\"a\": 1}}"), "JSON nests deeper than 1");
  has(characters_failure("{\"kind\": \"characters\", \"kind\": \"x\"}"), "the key 'kind' is there twice");
  has(characters_failure("{\"kind\": \"characters\"}"), "not a vocabulary of characters");
  has(characters_failure("{\"kind\": \"characters\", \"characters\": 7}"), "not a vocabulary of characters");
  has(characters_failure("{\"kind\": \"words\", \"characters\": \"ab\"}"), "not a vocabulary of characters");
  has(characters_failure("{\"kind\": \"characters\", \"characters\": \"aba\"}"), "the character 'a' is there twice");
  has(characters_failure("{\"kind\": \"characters\", \"characters\": -1.5e400}"), "a number is beyond all formats");
  has(characters_failure("{\"kind\": \"characters\", \"characters\": \"\xFF\"}"), "not JSON");
  has(characters_failure("{\"kind\": true}"), "not a vocabulary of characters");
  has(characters_failure("7"), "not an object of JSON");
  has(characters_failure("[7]"), "not an object of JSON");
}

TEST_CASE("bytes are tokens of their own") {
  const auto tokenizer = byte_tokenizer();
  std::string all;
  for (int i = 0; i < 100000; ++i) all += static_cast<char>(i * 7);
  CHECK(tokenizer->size() == 256);
  CHECK(tokenizer->encode(std::string("\0\xFFz", 3)) == std::vector<int32_t>{0, 255, 'z'});
  CHECK(tokenizer->decode(tokenizer->encode(all)) == all);
}
