// SPDX-License-Identifier: Apache-2.0
// `einc tokenize` and `einc detokenize` through the binary: every kind there and back, and what is said of wrong use.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/run_einc.h"

namespace einc::test {
namespace {

namespace fs = std::filesystem;

const std::string kVocabulary = std::string(EINC_SOURCE_DIR) + "/tests/unit/text/gpt2/vocab.json",
                  kRanks = std::string(EINC_SOURCE_DIR) + "/tests/unit/text/gpt2/ranks.tiktoken",
                  kLibraries = std::string(EINC_SOURCE_DIR) + "/tests/unit/text/vocabularies/";
const std::string kText = "The king's 42 men:\n\n  don't go — naïve 日本\n";

class TextFolder {
 public:
  TextFolder() : path_(fs::temp_directory_path() / fmt::format("einc_tokenize_{}", getpid())) { fs::create_directories(path_); }
  ~TextFolder() { fs::remove_all(path_); }
  TextFolder(const TextFolder&) = delete;
  TextFolder& operator=(const TextFolder&) = delete;
  std::string at(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(at(name), std::ios::binary) << content;
    return at(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream in(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

 private:
  fs::path path_;
};

std::string joined(std::vector<std::string> arguments, const std::vector<std::string>& more, int& status) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Ran ran = run_einc(arguments);
  status = ran.status;
  return ran.status == 0 ? ran.output : ran.errors;
}

}  // namespace

TEST_CASE("text of every kind comes back, whole or split") {
  const TextFolder folder;
  const std::string text = folder.write("text.txt", kText), train = folder.at("train.bin"), val = folder.at("val.bin"),
                    chars = folder.at("chars.json");
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> kinds{
      {{}, {}},
      {{"--kind", "bytes"}, {"--kind", "bytes"}},
      {{"--kind", "chars"}, {"--vocab", chars}},
      {{"--vocab", chars}, {"--vocab", chars, "--kind", "chars"}},
      {{"--vocab", kVocabulary}, {"--vocab", kVocabulary, "--kind", "gpt2"}},
      {{"--vocab", kRanks, "--kind", "gpt2"}, {"--vocab", kRanks}},
      {{"--vocab", kLibraries + "byte_level.json"}, {"--vocab", kLibraries + "byte_level.json", "--kind", "huggingface"}},
      {{"--vocab", kLibraries + "pairs_bytes.model", "--kind", "sentencepiece"}, {"--vocab", kLibraries + "pairs_bytes.model"}}};
  for (const auto& [there, back] : kinds) {
    int status = -1;
    std::string said = joined({"tokenize", text, "-o", train}, there, status);
    CAPTURE(said);
    REQUIRE(status == 0);
    CHECK(joined({"detokenize", train}, back, status) == kText);
    said = joined({"tokenize", text, "--split", "0.7", "-o", train}, there, status);
    REQUIRE(status == 0);
    const std::string first = joined({"detokenize", train}, back, status);
    CHECK(first.size() < kText.size());
    CHECK(first + joined({"detokenize", val}, back, status) == kText);
    CHECK(joined({"detokenize", val, "-o", folder.at("back.txt")}, back, status).empty());
    CHECK(first + folder.read("back.txt") == kText);
  }
}

TEST_CASE("files of tokens hold what they should") {
  const TextFolder folder;
  const std::string text = folder.write("text.txt", "bacé\n");
  Ran ran = run_einc({"tokenize", text, "--kind", "chars", "-o", folder.at("train.bin"), "--split", "0.6"});
  CHECK(ran.errors ==
        fmt::format("{}: 3 tokens (u16) of 3 bytes, vocabulary of 5\n{}: 2 tokens of 3 bytes\n{}: the vocabulary, 5 characters\n",
                    folder.at("train.bin"), folder.at("val.bin"), folder.at("chars.json")));
  CHECK(ran.output.empty());
  CHECK(folder.read("train.bin") == std::string("\2\0\1\0\3\0", 6));
  CHECK(folder.read("val.bin") == std::string("\4\0\0\0", 4));
  CHECK(folder.read("chars.json") == "{\"kind\": \"characters\", \"characters\": \"\\nabcé\"}\n");
  run_einc({"tokenize", text, "-o", folder.at("wide.u32")});
  CHECK(folder.read("wide.u32").substr(0, 8) == std::string("b\0\0\0a\0\0\0", 8));
  fs::rename(folder.at("wide.u32"), folder.at("wide.bin"));
  CHECK(run_einc({"detokenize", "--dtype", "u32", folder.at("wide.bin")}).output == "bacé\n");
}

TEST_CASE("what is wrong with texts, tokens and options is said") {
  const TextFolder folder;
  const std::string text = folder.write("text.txt", "ab\xFF"), out = folder.at("out.bin"), other = folder.write("other.txt", "xy");
  const auto fails = [&](const std::vector<std::string>& arguments, int status, const std::string& message) {
    const Ran ran = run_einc(arguments);
    INFO(ran.errors);
    CHECK(ran.status == status);
    CHECK(ran.errors == "einc: " + message + "\n");
    CHECK_FALSE(fs::exists(out));
  };
  fails({"tokenize", text, "-o", out, "--kind", "chars"}, 3, "byte 2 of the text: not UTF-8; --kind bytes takes any text");
  fails({"tokenize", folder.at("none"), "-o", out}, 4, folder.at("none") + ": cannot read: No such file or directory");
  fails({"tokenize", text, "-o", folder.at("none/out.bin")}, 4, folder.at("none/out.bin") + ": cannot write: No such file or directory");
  fails({"tokenize", text, "-o", out, "--kind", "gpt2"}, 2,
        "--kind gpt2 needs --vocab FILE: GPT-2's encoder.json with vocab.bpe beside it, or gpt2.tiktoken");
  fails({"tokenize", text, "-o", out, "--kind", "bytes", "--vocab", kVocabulary}, 2, "--kind bytes takes no --vocab");
  fails({"tokenize", text, "-o", out, "--merges", kVocabulary}, 2, "--merges goes with --vocab encoder.json");
  fails({"tokenize", text, "-o", folder.at("val.bin"), "--split", "0.5"}, 2,
        fmt::format("--split writes {} too, which -o names already", folder.at("val.bin")));
  CHECK_FALSE(fs::exists(folder.at("val.bin")));
  run_einc({"tokenize", other, "-o", folder.at("train.bin"), "--kind", "chars"});
  fails({"tokenize", text, "-o", out, "--vocab", folder.at("chars.json")}, 3, "byte 0 of the text: the vocabulary has no 'a'");
  fails({"detokenize", folder.at("train.bin"), "--kind", "chars"}, 2,
        "--kind chars needs the vocabulary that einc tokenize wrote: --vocab chars.json");
  const std::string odd = folder.write("odd.bin", "abc");
  fails({"detokenize", odd}, 3, odd + ": byte 3: 3 bytes of tokens are no whole number of u16");
  const std::string large = folder.write("large.bin", std::string("a\0\2\1", 4));
  fails({"detokenize", large}, 3, large + ": token 1 is 258, but the vocabulary has 256");
  fails({"tokenize", text, "-o", out, "--kind", "sentencepiece"}, 2, "--kind sentencepiece needs --vocab FILE: a .model of sentencepiece");
  fails({"tokenize", text, "-o", out, "--kind", "huggingface"}, 2, "--kind huggingface needs --vocab FILE: a tokenizer.json");
  fails({"tokenize", text, "-o", out, "--vocab", kLibraries + "byte_level.json"}, 3, "byte 2 of the text: not UTF-8");
  CHECK(run_einc({"tokenize", text}).status == 2);
  CHECK(run_einc({"tokenize", text, "-o", out, "--split", "2"}).status == 2);
  CHECK(run_einc({"tokenize", text, "-o", out, "--kind", "words"}).status == 2);
}

}  // namespace einc::test
