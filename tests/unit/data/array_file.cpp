// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/array_file.h"

#include <doctest/doctest.h>

#include "test_files.h"

using namespace einc;

namespace {

const NamedArrays kTwo{{"a", {DType::f32, {2}, {8, std::byte{1}}}}, {"h.0.w", {DType::i32, {1, 1}, {4, std::byte{2}}}}};
const NamedArrays kOne{{"a", {DType::f32, {2}, {8, std::byte{1}}}}};

std::string failure(const std::string& name, const std::string& content) {
  const TestFile file(name, content);
  return failure_of([&] { ArrayFile(file.path()); });
}

}  // namespace

TEST_CASE("a file's first bytes say what it is, whatever its name") {
  for (const ArrayFormat format : {ArrayFormat::npz, ArrayFormat::safetensors}) {
    const TestFile file("arrays.bin", "");
    write_arrays(file.path(), format, kTwo);
    const ArrayFile arrays(file.path());
    CHECK(arrays.names().size() == 2);
    CHECK(arrays.read("h.0.w").bytes == kTwo[1].second.bytes);
    CHECK(arrays.pick("a").bytes == kTwo[0].second.bytes);
    CHECK(failure_of([&] { arrays.pick("b"); }).find("arrays.bin: no array 'b' among its 2: ") != std::string::npos);
  }
  const TestFile file("array.bin", "");
  write_arrays(file.path(), ArrayFormat::npy, kOne);
  CHECK(ArrayFile(file.path()).pick("any").bytes == kOne[0].second.bytes);
}

TEST_CASE("the only array of an archive needs no name") {
  for (const ArrayFormat format : {ArrayFormat::npz, ArrayFormat::safetensors}) {
    const TestFile file("arrays.bin", "");
    write_arrays(file.path(), format, kOne);
    CHECK(ArrayFile(file.path()).pick("b").bytes == kOne[0].second.bytes);
    write_arrays(file.path(), format, {});
    CHECK(failure_of([&] { ArrayFile(file.path()).pick("b"); }).find("no array 'b' among its 0") != std::string::npos);
  }
}

TEST_CASE("what is no file of arrays is told by the reader its name asks for") {
  CHECK(failure("x.npy", "abc").find("x.npy: byte 3: 3 bytes are too few") != std::string::npos);
  CHECK(failure("x.npz", "abc").find("x.npz: byte 3: too short") != std::string::npos);
  CHECK(failure("x.safetensors", "abc").find("x.safetensors: byte 3: 3 bytes are too few") != std::string::npos);
  CHECK(failure("x.bin", "abc").find("x.bin: byte 0: neither a .npy, nor a .npz, nor a .safetensors file") != std::string::npos);
  CHECK(failure("old.pt", "\x80\x02\x8a\x0a").find("old.pt: byte 0: a PyTorch checkpoint") != std::string::npos);
  const std::string cut_zip = "PK\3\4" + std::string(60, 'x');
  CHECK(failure("w.pt", cut_zip).find("not a whole PyTorch checkpoint (a zip file): the end of its directory") != std::string::npos);
  CHECK(failure("w.pth", "PK\3\4").find("too short for a PyTorch checkpoint") != std::string::npos);
  CHECK(failure("w.npz", cut_zip).find("not a whole .npz file: the end of its directory") != std::string::npos);
  CHECK(failure("w.bin", cut_zip).find("not a whole .npz file") != std::string::npos);
  CHECK(failure("x.bin", "").find("neither") != std::string::npos);
}

TEST_CASE("endings and what formats hold") {
  CHECK(array_format("a/b.npz") == ArrayFormat::npz);
  CHECK_FALSE(array_format("a.npy.txt").has_value());
  CHECK(can_hold(ArrayFormat::safetensors, DType::bf16));
  CHECK_FALSE(can_hold(ArrayFormat::npy, DType::bf16));
  CHECK(can_hold(ArrayFormat::npz, DType::f16));
}
