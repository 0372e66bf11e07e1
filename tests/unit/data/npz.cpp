// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/npz.h"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <iterator>

#include "runtime/data/npy.h"
#include "test_files.h"

using namespace einc;

namespace {

std::string little(uint64_t value, size_t width) {
  std::string bytes;
  for (size_t i = 0; i < width; ++i) bytes += static_cast<char>(value >> 8 * i & 0xFF);
  return bytes;
}

uint32_t crc32(const std::string& text) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

// A zip archive, with fields that a test may spoil.
struct Zip {
  struct Member {
    std::string name, data;
    uint64_t method = 0, flags = 0, size = 0, compressed = 0, crc = 0, offset = 0;
    std::string extra;
  };
  std::vector<Member> members;
  std::string body;

  Zip& add(const std::string& name, const std::string& data) {
    members.push_back({name, data, 0, 0, data.size(), data.size(), crc32(data), body.size(), ""});
    body += little(0x04034b50, 4) + little(20, 2) + std::string(20, '\0') + little(name.size(), 2) + little(4, 2) + name +
            std::string("\x09\x09\0\0", 4) + data;
    return *this;
  }
  std::string bytes(const std::string& comment = "") const {
    std::string directory;
    for (const Member& m : members)
      directory += little(0x02014b50, 4) + little(20, 2) + little(20, 2) + little(m.flags, 2) + little(m.method, 2) + little(0, 4) +
                   little(m.crc, 4) + little(m.compressed, 4) + little(m.size, 4) + little(m.name.size(), 2) + little(m.extra.size(), 2) +
                   little(0, 2) + little(0, 2) + little(0, 2) + little(0, 4) + little(m.offset, 4) + m.name + m.extra;
    return body + directory + little(0x06054b50, 4) + little(0, 4) + little(members.size(), 2) + little(members.size(), 2) +
           little(directory.size(), 4) + little(body.size(), 4) + little(comment.size(), 2) + comment;
  }
};

std::string array_of(int value) {
  HostArray array{DType::u8, {2}, {static_cast<std::byte>(value), static_cast<std::byte>(value + 1)}};
  return npy_header(array) + std::string({static_cast<char>(value), static_cast<char>(value + 1)});
}

Zip two() {
  Zip zip;
  zip.add("a.npy", array_of(1)).add("h.0/w.npy", array_of(3));
  return zip;
}

std::string npz_failure(const std::string& content) {
  const TestFile file("hostile.npz", content);
  return failure_of([&] { read_npz(file.path()); });
}

}  // namespace

TEST_CASE("npz: arrays by name, with a comment behind the archive too") {
  for (const std::string comment : {"", "made by a test"}) {
    const TestFile file("a.npz", two().bytes(comment));
    const auto arrays = read_npz(file.path());
    REQUIRE(arrays.size() == 2);
    CHECK(arrays[0].first == "a");
    CHECK(arrays[1].first == "h.0/w");
    CHECK(arrays[1].second.bytes == std::vector<std::byte>{std::byte{3}, std::byte{4}});
  }
  const TestFile empty("e.npz", Zip().bytes());
  CHECK(read_npz(empty.path()).empty());
}

TEST_CASE("npz: zip64 sizes in the extra field") {
  Zip zip = two();
  Zip::Member& m = zip.members[1];
  m.extra = little(1, 2) + little(24, 2) + little(m.size, 8) + little(m.compressed, 8) + little(m.offset, 8);
  m.size = m.compressed = m.offset = UINT32_MAX;
  const TestFile file("z.npz", zip.bytes());
  CHECK(read_npz(file.path()).size() == 2);
  m.extra.resize(12);
  CHECK(npz_failure(zip.bytes()).find("an extra field is cut short") != std::string::npos);
  m.extra = little(1, 2) + little(8, 2) + little(5, 8);
  CHECK(npz_failure(zip.bytes()).find("a zip64 field is missing") != std::string::npos);
  m.extra = little(1, 2) + little(24, 2) + little(UINT64_MAX, 8) + little(UINT64_MAX, 8) + little(0, 8);
  CHECK(npz_failure(zip.bytes()).find("has another name") != std::string::npos);
  m.extra = little(1, 2) + little(24, 2) + little(UINT64_MAX, 8) + little(UINT64_MAX, 8) + little(zip.members[0].data.size() + 39, 8);
  CHECK(npz_failure(zip.bytes()).find("beyond the end of the file") != std::string::npos);
}

TEST_CASE("npz: hostile archives (F11) fail with a byte offset and a reason") {
  struct Case {
    std::function<void(Zip&)> spoil;
    std::string reason;
  };
  const Case cases[] = {
      {[](Zip& z) { z.members[1].method = 12; }, "'h.0/w.npy' is compressed by method 12"},
      {[](Zip& z) { z.members[1].method = 8; }, "'h.0/w.npy' is damaged: its deflated bytes are wrong"},
      {[](Zip& z) { z.members[1].method = 8, z.members[1].size = kFreeNpzBytes + 1; }, "more than 64-fold"},
      {[](Zip& z) { z.members[0].flags = 1; }, "'a.npy' is encrypted"},
      {[](Zip& z) { z.members[1].name = "a.npy"; }, "'a.npy' is there twice"},
      {[](Zip& z) { z.members[0].name = "../x.npy"; }, "is not the name of an array"},
      {[](Zip& z) { z.members[0].name = "/x.npy"; }, "is not the name of an array"},
      {[](Zip& z) { z.members[0].name = "x.txt"; }, "is not the name of an array"},
      {[](Zip& z) { z.members[0].name = "model/data.pkl"; }, "a PyTorch checkpoint"},
      {[](Zip& z) { z.members[0].name = "b.npy"; }, "another name in its own header"},
      {[](Zip& z) { z.members[0].size += 1; }, "has two sizes"},
      {[](Zip& z) { z.members[0].size = z.members[0].compressed = 100000; }, "beyond the end of the file"},
      {[](Zip& z) { z.members[0].size = z.members[0].compressed = z.members[0].size + 60; }, "'h.0/w.npy' overlaps another member"},
      {[](Zip& z) { z.members[0].offset = 3; }, "has no header"},
      {[](Zip& z) { z.members[0].offset = 0xFFFFFFF0u; }, "lies beyond the end of the file"},
      {[](Zip& z) { z.members[0].crc ^= 1; }, "'a.npy' is damaged"},
      {[](Zip& z) { z.body[60] ^= 1; }, "'a.npy' is damaged"},
  };
  for (const Case& c : cases) {
    Zip zip = two();
    c.spoil(zip);
    const std::string what = npz_failure(zip.bytes());
    CHECK_MESSAGE(what.find(c.reason) != std::string::npos, c.reason, " is not in: ", what);
    CHECK_MESSAGE(what.find("hostile.npz: byte ") != std::string::npos, what);
  }
}

TEST_CASE("npz: every prefix and every changed byte is survived") {
  const std::string whole = two().bytes();
  for (size_t i = 0; i < whole.size(); ++i) {
    CHECK(npz_failure(whole.substr(0, i)) != "");
    for (const char c : {'\0', '\xff'}) {
      std::string changed = whole;
      changed[i] = c;
      npz_failure(changed);
    }
  }
}

TEST_CASE("npz: what NumPy deflated, and what lies about its sizes") {
  const std::string path = EINC_SOURCE_DIR "/tests/unit/data/npz/deflated.npz";  // written by make.py
  const auto arrays = read_npz(path);
  REQUIRE(arrays.size() == 2);
  CHECK(arrays[0].first == "zeros");
  CHECK(arrays[0].second.shape == std::vector<int64_t>{100, 100});
  CHECK(arrays[0].second.bytes == std::vector<std::byte>(40'000));
  CHECK(arrays[1].second.dtype == DType::i32);
  CHECK(arrays[1].second.bytes[4] == std::byte{9});
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  // Size fields of the first entry in the directory: compressed at 20, inflated at 24.
  const size_t entry = whole.find("PK\1\2");
  const auto with = [&](size_t at, uint32_t value) {
    std::string changed = whole;
    for (size_t i = 0; i < 4; ++i) changed[entry + at + i] = static_cast<char>(value >> (8 * i) & 0xFF);
    return npz_failure(changed);
  };
  CHECK(with(24, 40'127).find("'zeros.npy' has more than its 40127 bytes") != std::string::npos);
  CHECK(with(24, 40'129).find("'zeros.npy' has 40128 bytes instead of 40129") != std::string::npos);
  CHECK(with(24, 4'000'000'000).find(" to 4000000000 bytes, which is more than 64-fold") != std::string::npos);
  CHECK(with(20, 95).find("deflated bytes are wrong") != std::string::npos);
  CHECK(with(16, 7).find("checksum is wrong") != std::string::npos);
}

TEST_CASE("npz: what is written reads back, and the same arrays give the same bytes") {
  const NamedArrays arrays{
      {"y", {DType::f32, {2}, {8, std::byte{7}}}}, {"empty", {DType::i64, {0, 3}, {}}}, {"\u00e9", {DType::u8, {}, {1, std::byte{2}}}}};
  const TestFile first("first.npz", ""), second("second.npz", "");
  write_npz(first.path(), arrays);
  write_npz(second.path(), arrays);
  const auto again = read_npz(first.path());
  REQUIRE(again.size() == arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    CHECK(again[i].first == arrays[i].first);
    CHECK(again[i].second.dtype == arrays[i].second.dtype);
    CHECK(again[i].second.shape == arrays[i].second.shape);
    CHECK(again[i].second.bytes == arrays[i].second.bytes);
  }
  const auto content = [](const TestFile& file) {
    std::ifstream in(file.path(), std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  CHECK(content(first) == content(second));
}
