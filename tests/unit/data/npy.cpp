// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/npy.h"

#include <doctest/doctest.h>

#include <cstring>

#include "test_files.h"

using namespace einc;

namespace {

constexpr std::string_view kDict = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }";

std::string npy(std::string header, const std::string& data, char major = 1, char minor = 0) {
  header += '\n';
  std::string text = "\x93NUMPY";
  text += {major, minor, static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8 & 0xFF)};
  if (major > 1) text += std::string(2, '\0');
  return text + header + data;
}

std::string ints(std::initializer_list<int32_t> values) {
  std::string bytes;
  for (const int32_t v : values) bytes.append(reinterpret_cast<const char*>(&v), sizeof v);
  return bytes;
}

std::vector<int32_t> as_ints(const HostArray& array) {
  std::vector<int32_t> values(array.bytes.size() / sizeof(int32_t));
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

HostArray load(const std::string& content) {
  const TestFile file("array.npy", content);
  return read_npy(file.path());
}

std::string npy_failure(const std::string& content) {
  const TestFile file("hostile.npy", content);
  return failure_of([&] { read_npy(file.path()); });
}

const std::string kSix = ints({1, 2, 3, 4, 5, 6});

}  // namespace

TEST_CASE("npy: versions 1 to 3 read alike") {
  for (const char version : {'\1', '\2', '\3'}) {
    const HostArray array = load(npy(std::string(kDict), kSix, version));
    CHECK(array.dtype == DType::i32);
    CHECK(array.shape == std::vector<int64_t>{2, 3});
    CHECK(as_ints(array) == std::vector<int32_t>{1, 2, 3, 4, 5, 6});
  }
}

TEST_CASE("npy: Fortran order and big-endian data give the right values") {
  const HostArray fortran = load(npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }", ints({1, 4, 2, 5, 3, 6})));
  CHECK(as_ints(fortran) == std::vector<int32_t>{1, 2, 3, 4, 5, 6});
  const HostArray big = load(npy("{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }", std::string("\0\0\1\2\xff\xff\xff\xfe", 8)));
  CHECK(as_ints(big) == std::vector<int32_t>{258, -2});
}

TEST_CASE("npy: scalars, empty arrays and bools load") {
  const HostArray scalar = load(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (), }", ints({7})));
  CHECK(scalar.shape.empty());
  CHECK(as_ints(scalar) == std::vector<int32_t>{7});
  CHECK(load(npy("{'descr': '<f8', 'fortran_order': True, 'shape': (3, 0, 9223372036854775807), }", "")).count() == 0);
  const HostArray bools = load(npy("{\"shape\": (3,), \"descr\": '|b1', 'fortran_order': False}", std::string("\0\1\7", 3)));
  CHECK(bools.bytes == std::vector<std::byte>{std::byte{0}, std::byte{1}, std::byte{1}});
}

TEST_CASE("npy: hostile files (F01 to F09) fail with a byte offset and a reason") {
  const auto with_shape = [](const std::string& shape) {
    return npy("{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }", "");
  };
  std::string deep = "(";
  for (int i = 0; i < 33; ++i) deep += "1, ";
  const std::pair<std::string, std::string> cases[] = {
      {"", "byte 0: 0 bytes are too few"},
      {"\x93NUMP", "byte 5: 5 bytes are too few"},
      {std::string("\x93NUMPY\1\0v", 9), "byte 9: 9 bytes are too few"},
      {"NUMPYNUMPYNUMPY", "byte 0: not a .npy file"},
      {npy(std::string(kDict), kSix, 9, 9), "byte 6: format version 9.9"},
      {npy(std::string(kDict), kSix, 1, 1), "byte 6: format version 1.1"},
      {std::string("\x93NUMPY\2\0\1\1\1", 11), "ends within its header"},
      {std::string("\x93NUMPY\1\0\xff\xff", 10), "byte 8: a header of 65535 bytes is above the limit of 10000"},
      {std::string("\x93NUMPY\1\0\x10\0abc", 13), "byte 8: a header of 16 bytes, but only 3 follow"},
      {npy("[1, 2]", kSix), "byte 10: expected '{'"},
      {npy("{}", kSix), "has no 'descr'"},
      {npy("{'descr': '<i4', 'fortran_order': False, }", kSix), "has no 'shape'"},
      {npy("{'descr': '<i4', 'shape': (6,), }", kSix), "has no 'fortran_order'"},
      {npy("{'descr': '<i4', 'descr': '<i4', }", kSix), "has 'descr' twice"},
      {npy("{'descr': '<i4', 'extra': 1, }", kSix), "unknown key 'extra'"},
      {npy("{'\033[31m': 1, }", kSix), "unknown key '\\x1b[31m'"},
      {npy(std::string(kDict) + " x", kSix), "must end with spaces and a newline"},
      {npy(std::string(kDict), kSix).erase(10 + kDict.size(), 1).insert(10, " "), "must end with spaces and a newline"},
      {npy(std::string(kDict), kSix + "x"), "promises 24 bytes of elements, but 25 follow"},
      {npy(std::string(kDict), kSix.substr(1)), "promises 24 bytes of elements, but 23 follow"},
      {npy("{'descr': '<f8', 'fortran_order': __import__('os'), 'shape': (1,)}", ""), "must be True or False"},
      {npy("{'descr': __import__('os').system('x'), }", ""), "expected a string"},
      {npy("{'descr': [('a', '<f4')], }", ""), "records are not supported"},
      {npy("{'descr': '<c16', }", ""), "dtype '<c16' is not supported"},
      {npy("{'descr': '|O', }", ""), "dtype '|O' is not supported"},
      {npy("{'descr': '|f4', }", ""), "dtype '|f4' is not supported"},
      {npy("{'descr': '', }", ""), "is not supported"},
      {npy("{'descr': '<f4", ""), "not closed"},
      {with_shape("(65536, 65536)"), "promises 34359738368 bytes of elements, but 0 follow"},
      {with_shape("(9223372036854775807, 9223372036854775807)"), "does not fit 64 bits"},
      {with_shape("(2305843009213693952,)"), "does not fit 64 bits"},
      {with_shape("(9223372036854775808,)"), "does not fit 63 bits"},
      {with_shape("(-1,)"), "expected a size"},
      {with_shape("(3)"), "expected ',' in the shape"},
      {with_shape("3"), "expected '('"},
      {with_shape("(1.5,)"), "expected"},
      {with_shape(deep + ")"), "more than 32 axes"},
  };
  for (const auto& [content, reason] : cases) {
    const std::string what = npy_failure(content);
    CHECK_MESSAGE(what.find(reason) != std::string::npos, reason, " is not in: ", what);
    CHECK_MESSAGE(what.find("hostile.npy: byte ") != std::string::npos, what);
  }
}

TEST_CASE("npy: the header's limit holds at 10,000 bytes and not above") {
  const auto padded = [](size_t size) { return npy(std::string(kDict) + std::string(size - kDict.size() - 1, ' '), kSix); };
  CHECK(npy_failure(padded(kMaxNpyHeader)) == "");
  CHECK(npy_failure(padded(kMaxNpyHeader + 1)).find("above the limit") != std::string::npos);
}

TEST_CASE("npy: every prefix of a file and every changed byte is survived") {
  const std::string whole = npy(std::string(kDict), kSix);
  for (size_t i = 0; i < whole.size(); ++i) {
    CHECK(npy_failure(whole.substr(0, i)) != "");
    for (const char c : {'\0', '9', '(', '\xff'}) {
      std::string changed = whole;
      changed[i] = c;
      npy_failure(changed);
    }
  }
}

TEST_CASE("npy: what is written reads back, header as np.save's") {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::i64, DType::i32, DType::u16, DType::u8, DType::boolean})
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {3}, {2, 3}, {4, 0}}) {
      HostArray array{dtype, shape, {}};
      size_t count = 1;
      for (const int64_t size : shape) count *= static_cast<size_t>(size);
      array.bytes.resize(count * static_cast<size_t>(bytes_of(dtype)));
      for (size_t i = 0; i < array.bytes.size(); ++i) array.bytes[i] = static_cast<std::byte>(dtype == DType::boolean ? i % 2 : i);
      const TestFile file("w.npy", "");
      write_npy(file.path(), array);
      const HostArray again = read_npy(file.path());
      CHECK(again.dtype == dtype);
      CHECK(again.shape == shape);
      CHECK(again.bytes == array.bytes);
      CHECK(npy_header(array).size() % 64 == 0);
    }
  const std::string header = npy_header({DType::f32, {3}, {}});
  CHECK(header.substr(10, 57) == "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }");
}

TEST_CASE("npy: files that are not there or cannot be written are resource failures") {
  CHECK(failure_of([] { read_npy("/nowhere/x.npy"); }) == "/nowhere/x.npy: cannot read: No such file or directory");
  CHECK(failure_of([] { read_npy("/"); }).find("not a regular file") != std::string::npos);
  CHECK(failure_of([] { write_npy("/nowhere/x.npy", {DType::u8, {}, {std::byte{1}}}); }).find("cannot write") != std::string::npos);
}
