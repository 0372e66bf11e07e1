// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/token_file.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "test_files.h"

using namespace einc;

namespace {

template <class T>
std::string bytes_of_all(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string header(uint32_t magic, uint32_t version, uint32_t count) {
  std::vector<uint32_t> numbers(256);
  numbers[0] = magic;
  numbers[1] = version;
  numbers[2] = count;
  return bytes_of_all(numbers);
}

std::vector<int32_t> all_of(const TokenFile& file) {
  std::vector<int32_t> tokens(file.count());
  file.read(0, tokens);
  return tokens;
}

std::string token_failure(const std::string& name, const std::string& content, std::optional<TokenFormat> asked = {}) {
  const TestFile file(name, content);
  return failure_of([&] { all_of(TokenFile(file.path(), asked)); });
}

}  // namespace

TEST_CASE("token files: raw, and behind llm.c's header") {
  const std::string two = bytes_of_all<uint16_t>({0, 1, 65535}), four = bytes_of_all<uint32_t>({0, 100000, 2147483647});
  const std::vector<int32_t> small{0, 1, 65535}, large{0, 100000, 2147483647};
  const TestFile raw("train.bin", two), wide("train.u32.bin", four), ends("train.u32", four),
      llmc("llmc.bin", header(20240520, 1, 3) + two), llama("llama.bin", header(20240801, 7, 3) + four), empty("empty.bin", "");
  CHECK(all_of(TokenFile(raw.path())) == small);
  CHECK(TokenFile(raw.path()).format() == TokenFormat::u16);
  CHECK(all_of(TokenFile(wide.path())) == large);
  CHECK(all_of(TokenFile(ends.path())) == large);
  CHECK(TokenFile(wide.path(), TokenFormat::u16).count() == 6);
  CHECK(all_of(TokenFile(llmc.path())) == small);
  CHECK(all_of(TokenFile(llama.path())) == large);
  CHECK(all_of(TokenFile(llama.path(), TokenFormat::u32)) == large);
  CHECK(TokenFile(empty.path()).count() == 0);
  std::vector<int32_t> middle(1);
  TokenFile(llmc.path()).read(1, middle);
  CHECK(middle.front() == 1);
}

TEST_CASE("token files: hostile ones fail with a byte offset and a reason") {
  CHECK(token_failure("a.bin", "abc").find("a.bin: byte 3: 3 bytes of tokens are no whole number of u16") != std::string::npos);
  CHECK(token_failure("a.u32", "abcdef").find("byte 6: 6 bytes of tokens are no whole number of u32") != std::string::npos);
  CHECK(token_failure("a.bin", header(20240520, 1, 4) + "abcdef").find("byte 8: the header promises 4 tokens, but 3 follow") !=
        std::string::npos);
  CHECK(token_failure("a.bin", header(20240520, 1, 0xFFFFFFFF)).find("promises 4294967295 tokens, but 0 follow") != std::string::npos);
  CHECK(token_failure("a.bin", header(20240520, 1, 3) + "abcde").find("byte 1029: 5 bytes of tokens are no whole number") !=
        std::string::npos);
  CHECK(token_failure("a.bin", header(20240520, 2, 0)).find("byte 4: header version 2 is not supported (1 is)") != std::string::npos);
  CHECK(token_failure("a.bin", header(20240520, 1, 0).substr(0, 1023)).find("byte 1023: the file ends within its header") !=
        std::string::npos);
  CHECK(token_failure("a.u32", header(20240520, 1, 0), TokenFormat::u32).find("byte 0: the header says that the tokens are u16, not u32") !=
        std::string::npos);
  CHECK(token_failure("a.u32", bytes_of_all<uint32_t>({1, 2147483648})).find("byte 4: token 2147483648 is above 2147483647") !=
        std::string::npos);
  CHECK(failure_of([] { TokenFile("/dev/null"); }).find("not a regular file") != std::string::npos);
  CHECK(failure_of([] { TokenFile("/nowhere/x.bin"); }).find("cannot read: No such file") != std::string::npos);
}

TEST_CASE("token files: the hash of a sample tells files apart") {
  std::vector<uint16_t> tokens(200000);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<uint16_t>(i * 7);
  const TestFile one("one.bin", bytes_of_all(tokens)), copy("copy.bin", bytes_of_all(tokens));
  tokens.back() ^= 1;
  const TestFile other_end("end.bin", bytes_of_all(tokens));
  tokens.pop_back();
  const TestFile shorter("shorter.bin", bytes_of_all(tokens)), tiny("tiny.bin", bytes_of_all<uint16_t>({1, 2})), tinier("tinier.bin", "ab");
  const uint64_t hash = TokenFile(one.path()).sample_hash();
  CHECK(TokenFile(copy.path()).sample_hash() == hash);
  CHECK(TokenFile(other_end.path()).sample_hash() != hash);
  CHECK(TokenFile(shorter.path()).sample_hash() != hash);
  CHECK(TokenFile(tiny.path()).sample_hash() != TokenFile(tinier.path()).sample_hash());
}
