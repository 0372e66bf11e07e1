// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/safetensors.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/base/float_format.h"
#include "test_files.h"

using namespace einc;

namespace {

const std::string kFolder = EINC_SOURCE_DIR "/tests/unit/data/safetensors/";  // written by make.py

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string with_length(const std::string& header, const std::string& data = "") {
  std::string text;
  for (size_t i = 0; i < 8; ++i) text += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return text + header + data;
}

std::string length_only(uint64_t length) {
  std::string text;
  for (size_t i = 0; i < 8; ++i) text += static_cast<char>(length >> (8 * i) & 0xFF);
  return text;
}

std::string safetensors_failure(const std::string& content) {
  const TestFile file("hostile.safetensors", content);
  return failure_of([&] { SafetensorsFile(file.path()); });
}

// One tensor: of these fields, over `bytes` bytes.
std::string tensor(const std::string& fields, size_t bytes) { return with_length("{\"t\":{" + fields + "}}", std::string(bytes, '\0')); }

}  // namespace

TEST_CASE("safetensors: every dtype as the reference implementation writes it") {
  const SafetensorsFile file(kFolder + "every_dtype.safetensors");
  REQUIRE(file.tensors().size() == 11);
  for (const auto& [name, dtype] : {std::pair("F64", DType::f64),
                                    {"F32", DType::f32},
                                    {"BF16", DType::bf16},
                                    {"F16", DType::f16},
                                    {"F8_E4M3", DType::f8e4m3},
                                    {"F8_E5M2", DType::f8e5m2},
                                    {"I64", DType::i64},
                                    {"I32", DType::i32},
                                    {"U16", DType::u16},
                                    {"U8", DType::u8},
                                    {"BOOL", DType::boolean}}) {
    CAPTURE(name);
    const SafetensorsEntry* entry = file.find(std::string("t.") + name);
    REQUIRE(entry != nullptr);
    const HostArray array = file.read(*entry);
    CHECK(array.dtype == dtype);
    CHECK(array.shape == std::vector<int64_t>{2, 3});
    for (size_t i = 0; i < 6; ++i) {
      std::vector<std::byte> expected(static_cast<size_t>(bytes_of(dtype)));
      store_number(dtype, static_cast<double>(i), expected.data());
      CHECK(std::memcmp(expected.data(), array.bytes.data() + i * expected.size(), expected.size()) == 0);
    }
  }
}

TEST_CASE("safetensors: scalars, empty tensors, metadata, names with quotes; a dtype that einc has not is only listed") {
  const SafetensorsFile file(kFolder + "odd.safetensors");
  CHECK(file.metadata() == SafetensorsMetadata{{"format", "pt"}});
  const HostArray scalar = file.read(*file.find("scalar"));
  CHECK(scalar.shape.empty());
  float value = 0;
  std::memcpy(&value, scalar.bytes.data(), sizeof value);
  CHECK(value == 2.5F);
  CHECK(file.read(*file.find("empty")).shape == std::vector<int64_t>{0, 3});
  CHECK(file.read(*file.find("a \"quoted\"\n\u00e9")).bytes.front() == std::byte{7});
  CHECK(file.find("bytes")->dtype == "I8");
  CHECK(failure_of([&] { file.read(*file.find("bytes")); }).find("'bytes' is I8, a dtype that einc has not") != std::string::npos);
  CHECK(file.find("other") == nullptr);
}

TEST_CASE("safetensors: what is written has the reference implementation's bytes, in whatever order it is given") {
  for (const bool reversed : {false, true}) {
    const SafetensorsFile file(kFolder + "every_dtype.safetensors");
    std::vector<SafetensorsItem> items;
    for (const SafetensorsEntry& entry : file.tensors()) {
      const DType dtype = file.read(entry).dtype;
      items.insert(reversed ? items.begin() : items.end(), {entry.name, dtype, entry.shape, file.bytes(entry)});
    }
    const TestFile out("out.safetensors", "old");
    write_safetensors(out.path(), items);
    CHECK(content_of(out.path()) == content_of(kFolder + "every_dtype.safetensors"));
  }
  const SafetensorsFile odd(kFolder + "odd.safetensors");
  std::vector<SafetensorsItem> items;
  for (const SafetensorsEntry& entry : odd.tensors())
    if (entry.name != "bytes") items.push_back({entry.name, odd.read(entry).dtype, entry.shape, odd.bytes(entry)});
  const TestFile out("out.safetensors", "");
  write_safetensors(out.path(), items, {{"b", "2"}, {"a", "\"1\"\n"}});
  const SafetensorsFile again(out.path());
  CHECK(again.metadata() == SafetensorsMetadata{{"a", "\"1\"\n"}, {"b", "2"}});
  CHECK(again.tensors().size() == 3);
  CHECK(again.read(*again.find("scalar")).bytes == odd.read(*odd.find("scalar")).bytes);
}

TEST_CASE("safetensors: a failed write leaves the old file and nothing else") {
  const TestFile old("kept.safetensors", "old");
  const std::filesystem::path folder = std::filesystem::path(old.path()).parent_path();
  CHECK(failure_of([&] { write_safetensors(old.path(), {}, {{"not", "\xff"}}); }).find("not UTF-8") != std::string::npos);
  CHECK(failure_of([&] { write_safetensors((folder / "missing" / "x.safetensors").string(), {}); }).find("cannot write") !=
        std::string::npos);
  CHECK(content_of(old.path()) == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
}

TEST_CASE("safetensors: data that no dtype's alignment fits") {
  const TestFile file("odd.safetensors", with_length("{\"t\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}} ", length_only(5)));
  const SafetensorsFile odd(file.path());
  CHECK(odd.read(odd.tensors()[0]).bytes[0] == std::byte{5});
}

TEST_CASE("safetensors: hostile files (G01 to G11) fail with a byte offset and a reason") {
  std::string deep = R"({"__metadata__":)", overlapping = "{", numbers = R"("dtype":"F32","shape":[1)";
  for (int i = 0; i < 100'000; ++i) deep += R"({"a":)";
  for (int i = 0; i < 1000; ++i)
    overlapping += fmt::format(R"({}"t{}":{{"dtype":"U8","shape":[100],"data_offsets":[0,100]}})", i == 0 ? "" : ",", i);
  for (size_t i = 0; i < kMaxSafetensorsRank; ++i) numbers += ",1";
  const std::string one = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  const std::pair<std::string, std::string> cases[] = {
      {"", "byte 0: 0 bytes are too few"},
      {"1234567", "byte 7: 7 bytes are too few"},
      {length_only(0), "byte 8: the header is not a JSON object"},
      {length_only(1) + "{", "the header is not JSON"},
      {length_only(5) + "{}", "byte 0: a header of 5 bytes, but only 2 follow"},
      {length_only(kMaxSafetensorsHeader), "a header of 100000000 bytes, but only 0 follow"},
      {length_only(kMaxSafetensorsHeader + 1), "a header of 100000001 bytes is above the limit of 100000000"},
      {length_only(UINT64_MAX), "a header of 18446744073709551615 bytes is above the limit"},
      {with_length("[]"), "not a JSON object"},
      {with_length(" {}"), "not a JSON object"},
      {with_length("{} x"), "byte 11: the header is not JSON"},
      {with_length("{\"\xff\":{}}"), "byte 10: the header is not JSON"},
      {with_length(deep), "the header, '__metadata__': an object where none may be"},
      {with_length(R"({"__metadata__":{"a":1}})"), "'__metadata__': a number where none may be"},
      {with_length(R"({"__metadata__":{"a":null}})"), "null where none may be"},
      {with_length(R"({"__metadata__":{"a":["b"]}})"), "a list where none may be"},
      {with_length(R"({"__metadata__":{"a":"1","a":"2"}})"), "has the key 'a' twice"},
      {with_length(R"({"__metadata__":"a"})"), "a string where none may be"},
      {with_length(R"({"t":true})"), "'t': true or false where none may be"},
      {with_length(R"({"t":{},"t":{}})"), "'t': has no dtype"},
      {with_length("{\"t\":{" + one + "},\"t\":{" + one + "}}", "12345678"), "'t': is there twice"},
      {tensor(R"("shape":[1],"data_offsets":[0,4])", 4), "'t': has no dtype"},
      {tensor(R"("dtype":"F32","data_offsets":[0,4])", 4), "'t': has no shape"},
      {tensor(R"("dtype":"F32","shape":[1])", 4), "'t': has no data_offsets"},
      {tensor(one + R"(,"dtype":"F32")", 8), "has dtype twice"},
      {tensor(one + R"(,"shape":[2])", 8), "has shape twice"},
      {tensor(one + R"(,"data_offsets":[0,8])", 8), "has data_offsets twice"},
      {tensor(one + R"(,"more":[1])", 8), "has the unknown field 'more'"},
      {tensor(R"("dtype":"F3","shape":[1],"data_offsets":[0,4])", 4), "'t': has the unknown dtype 'F3'"},
      {tensor("\"dtype\":\"\\u001b[31m\"", 4), "unknown dtype '\\x1b[31m'"},
      {tensor(R"("dtype":"F4","shape":[3],"data_offsets":[0,1])", 1), "shape and dtype take 1 bytes"},
      {tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])", 8), "take 12 bytes, but its offsets have 8"},
      {tensor(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])", 8), "shape: -2 is negative"},
      {tensor(R"("dtype":"F32","shape":[2.5],"data_offsets":[0,8])", 8), "shape: 2.5 is not a whole number"},
      {tensor(R"("dtype":"F32","shape":[1e3],"data_offsets":[0,4000])", 4000), "shape: 1e3 is not a whole number"},
      {tensor(R"("dtype":"F32","shape":[[1]],"data_offsets":[0,4])", 4), "a list where none may be"},
      {tensor(R"("dtype":"F32","shape":["1"],"data_offsets":[0,4])", 4), "a string where none may be"},
      {tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])", 0), "size does not fit 64 bits"},
      {tensor(R"("dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0])", 0), "size does not fit 64 bits"},
      {tensor(R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,0])", 0), "9223372036854775808 does not fit 63 bits"},
      {tensor(R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,0])", 0), "is not a whole number"},
      {tensor(numbers + R"(],"data_offsets":[0,4])", 4), "shape: more than 32 numbers"},
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0])", 4), "data_offsets must be two numbers"},
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])", 4), "data_offsets must be two numbers"},
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])", 4), "end at 0, before they begin at 4"},
      {tensor(one, 7), "'t' ends at byte 8 of the data, which has 7"},
      {tensor(one, 9), "the last 1 bytes belong to no tensor"},
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])", 8), "4 bytes before 't' belong to no tensor"},
      {tensor(R"("dtype":"U8","shape":[1],"data_offsets":[9223372036854775806,9223372036854775807])", 1),
       "ends at byte 9223372036854775807"},
      {with_length(overlapping + "}", std::string(100, 'x')), "overlaps another tensor"},
  };
  for (const auto& [content, reason] : cases) {
    const std::string what = safetensors_failure(content);
    CHECK_MESSAGE(what.find(reason) != std::string::npos, reason, " is not in: ", what);
    CHECK_MESSAGE(what.find("hostile.safetensors: byte ") != std::string::npos, what);
  }
}

TEST_CASE("safetensors: limits hold at the limit and not above") {
  std::string ones = "1";
  for (size_t i = 1; i < kMaxSafetensorsRank; ++i) ones += ",1";
  CHECK(safetensors_failure(tensor("\"dtype\":\"F32\",\"shape\":[" + ones + "],\"data_offsets\":[0,4]", 4)).empty());
  CHECK(safetensors_failure(with_length("{}" + std::string(1000, ' '))).empty());
}

TEST_CASE("safetensors: every prefix of a file and every changed byte is survived") {
  const std::string whole = content_of(kFolder + "odd.safetensors");
  for (size_t i = 0; i < whole.size(); ++i) {
    CHECK(safetensors_failure(whole.substr(0, i)) != "");
    for (const char c : {'\0', '"', '9', '\xff'}) {
      std::string changed = whole;
      changed[i] = c;
      safetensors_failure(changed);
    }
  }
}
