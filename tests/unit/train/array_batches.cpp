// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/array_batches.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include <einc/error.h>
#include "data.h"
#include "runtime/data/npy.h"

using namespace einc;

namespace {

template <class T>
HostArray array_of(std::vector<int64_t> shape, const std::vector<T>& values) {
  HostArray array{dtype_of<T>(), std::move(shape), {}};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  array.bytes.assign(bytes.begin(), bytes.end());
  return array;
}

// 0, 1, 2, ... in that shape.
template <class T>
HostArray counting_array(std::vector<int64_t> shape) {
  std::vector<T> values(static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())));
  std::iota(values.begin(), values.end(), T{});
  return array_of(std::move(shape), values);
}

class NpyTestFile : public TestFile {
 public:
  NpyTestFile(const std::string& name, const HostArray& array) : TestFile(name, "") { write_npy(path(), array); }
};

DataSettings with_files(DataSettings settings, std::vector<std::pair<std::string, std::string>> files) {
  settings.files = std::move(files);
  return settings;
}

const std::vector<TensorInfo> kInputs{input_of("x", {4, 3}, DType::f32), input_of("y", {4})};

std::string error_of(const std::vector<TensorInfo>& inputs, std::vector<std::pair<std::string, std::string>> files) {
  try {
    fill(*open_batches(with_files(ordered(RowOrder::in_order), std::move(files)), inputs), 0, inputs);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.what();
  } catch (const RuntimeFailure& failure) {
    CHECK(failure.kind() == FailureKind::data);
    return failure.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("rows of several arrays stay together, and an epoch has each once") {
  const NpyTestFile x("x.npy", counting_array<float>({11, 3})), y("y.npy", counting_array<int64_t>({11}));
  for (const RowOrder order : {RowOrder::random, RowOrder::epochs, RowOrder::in_order}) {
    const auto batches = open_batches(with_files(ordered(order, 3), {{"x", x.path()}, {"y", y.path()}}), kInputs);
    std::vector<double> labels;
    for (uint64_t n = 0; n < 11; ++n) {
      const Filled values = fill(*batches, n, kInputs);
      for (size_t i = 0; i < 12; ++i) REQUIRE(values.at("x")[i] == values.at("y")[i / 3] * 3 + static_cast<double>(i % 3));
      labels.insert(labels.end(), values.at("y").begin(), values.at("y").end());
    }
    if (order == RowOrder::random) continue;
    CHECK(batches->batches_per_epoch() == 3);
    for (size_t epoch = 0; epoch < 4; ++epoch) {
      std::vector<double> seen(labels.begin() + static_cast<int64_t>(epoch * 11), labels.begin() + static_cast<int64_t>(epoch * 11 + 11));
      std::sort(seen.begin(), seen.end());
      for (size_t i = 0; i < 11; ++i) CHECK(seen[i] == static_cast<double>(i));
    }
  }
}

TEST_CASE("the validation part of arrays is their tail") {
  const NpyTestFile x("x.npy", counting_array<float>({20, 3})), y("y.npy", counting_array<int64_t>({20}));
  const DataSettings settings = with_files(ordered(RowOrder::in_order, 0, 0.25), {{"x", x.path()}, {"y", y.path()}});
  CHECK(fill(*open_batches(settings, kInputs), 3, kInputs).at("y") == std::vector<double>{12, 13, 14, 0});
  CHECK(fill(*open_batches(settings, kInputs, DataPart::validation), 0, kInputs).at("y") == std::vector<double>{15, 16, 17, 18});
}

TEST_CASE("elements become what the input takes") {
  const std::vector<DType> floats{DType::f64, DType::f32, DType::bf16, DType::f16, DType::f8e4m3};
  const auto converted = [](const HostArray& array, DType to) {
    const NpyTestFile file("x.npy", array);
    const std::vector<TensorInfo> inputs{input_of("x", {array.shape[0]}, to)};
    return fill(*open_batches(with_files(ordered(RowOrder::in_order), {{"x", file.path()}}), inputs), 0, inputs).at("x");
  };
  for (const DType to : floats) {
    CHECK(converted(array_of<uint8_t>({3}, {0, 1, 128}), to) == std::vector<double>{0, 1, 128});
    CHECK(converted(array_of<int64_t>({2}, {-3, 64}), to) == std::vector<double>{-3, 64});
    CHECK(converted(array_of<double>({2}, {0.5, -1.5}), to) == std::vector<double>{0.5, -1.5});
    CHECK(converted(HostArray{DType::f16, {2}, {std::byte{0}, std::byte{0x3C}, std::byte{0}, std::byte{0xC0}}}, to) ==
          std::vector<double>{1, -2});
  }
  CHECK(converted(array_of<double>({1}, {0.1}), DType::f32) == std::vector<double>{static_cast<double>(0.1F)});
  CHECK(converted(array_of<float>({1}, {1.00390625F}), DType::bf16) == std::vector<double>{1});  // half way: to even
  for (const DType to : {DType::i64, DType::i32, DType::u16, DType::u8}) {
    CHECK(converted(array_of<int64_t>({2}, {0, 255}), to) == std::vector<double>{0, 255});
    CHECK(converted(HostArray{DType::boolean, {2}, {std::byte{1}, std::byte{0}}}, to) == std::vector<double>{1, 0});
  }
}

TEST_CASE("Fortran-ordered and big-endian arrays give their rows") {
  std::string big = npy_header(HostArray{DType::i32, {2, 2}, {}});
  big.replace(big.find("<i4"), 3, ">i4").replace(big.find("False"), 5, "True ");
  for (const char value : {1, 3, 2, 4}) big += std::string(3, '\0') + value;
  const TestFile file("x.npy", big);
  const std::vector<TensorInfo> inputs{input_of("x", {2, 2}, DType::f32)};
  CHECK(fill(*open_batches(with_files(ordered(RowOrder::in_order), {{"x", file.path()}}), inputs), 0, inputs).at("x") ==
        std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("arrays that do not fit the program are refused") {
  const NpyTestFile x("x.npy", counting_array<float>({8, 3})), y("y.npy", counting_array<int64_t>({8})),
      wide("wide.npy", counting_array<float>({8, 4})), short_y("short.npy", counting_array<int64_t>({7})),
      number("number.npy", counting_array<float>({})), large("large.npy", array_of<int64_t>({4}, {0, 1, 5'000'000'000, 2})),
      larger("larger.npy", array_of<int64_t>({5}, {0, 1, 5'000'000'000, 2, 3})), none("none.npy", counting_array<float>({0, 3})),
      none_y("none_y.npy", counting_array<int64_t>({0}));
  CHECK(error_of(kInputs, {{"x", x.path()}, {"y", y.path()}}).empty());
  CHECK(has(error_of(kInputs, {{"x", x.path()}}), "input y gets no values: --data y=FILE.npy"));
  CHECK(has(error_of(kInputs, {{"z", x.path()}}), "--data z: the program has no input of that name; it has x and y"));
  CHECK(has(error_of(kInputs, {{"x", x.path()}, {"x", x.path()}}), "--data x is given twice"));
  CHECK(has(error_of(kInputs, {{"x", x.path()}, {"y", "y.bin"}}), "--data y=y.bin: a token file is the only --data of a program"));
  CHECK(has(error_of(kInputs, {{"x", wide.path()}, {"y", y.path()}}), "wide.npy: its rows are [4], but those of input x are [3]"));
  CHECK(has(error_of(kInputs, {{"x", number.path()}, {"y", y.path()}}), "number.npy: a single number, which has no rows"));
  CHECK(has(error_of(kInputs, {{"x", x.path()}, {"y", short_y.path()}}), "short.npy: it has 7 rows, but "));
  CHECK(has(error_of(kInputs, {{"x", none.path()}, {"y", none_y.path()}}), "the data has no rows"));
  CHECK(has(error_of({input_of("y", {4})}, {{"y", large.path()}}),
            "large.npy: element 2 is 5000000000, which input y of dtype i32 cannot hold"));
  CHECK(has(error_of({input_of("y", {4})}, {{"y", larger.path()}}), "larger.npy: element 0 of row 2 is 5000000000"));
  const NpyTestFile huge("huge.npy", array_of<double>({2, 2}, {0, std::numeric_limits<double>::infinity(), 1, 1e300})),
      half("half.npy", array_of<float>({2}, {65504, 65520}));
  CHECK(has(error_of({input_of("x", {2, 2}, DType::f32)}, {{"x", huge.path()}}),
            "huge.npy: element 3 is 1e+300, which input x of dtype f32 cannot hold"));
  CHECK(has(error_of({input_of("x", {2}, DType::f16)}, {{"x", half.path()}}),
            "half.npy: element 1 is 65520, which input x of dtype f16 cannot hold"));
  CHECK(has(error_of({input_of("x", {4, 3})}, {{"x", x.path()}}), "x.npy: its elements are f32, but those of input x are i32"));
  CHECK(has(error_of({input_of("x", {}, DType::f32)}, {{"x", x.path()}}), "--data x: the input is a single number and has no rows"));
  CHECK(has(error_of({input_of("x", {4, 3}, DType::f32), input_of("y", {5})}, {{"x", x.path()}, {"y", y.path()}}),
            "the first axes of x and y have sizes 4 and 5"));
}

TEST_CASE("arrays in the inputs' own shapes are one batch, as they are") {
  // A graph: the edges name places of the nodes, and neither is a list of examples.
  const std::vector<TensorInfo> graph{input_of("nodes", {4, 3}, DType::f32), input_of("edges", {5, 2}), input_of("rate", {}, DType::f32)};
  const NpyTestFile nodes("nodes.npy", counting_array<float>({4, 3})), edges("edges.npy", counting_array<int64_t>({5, 2})),
      rate("rate.npy", counting_array<float>({}));
  const std::vector<std::pair<std::string, std::string>> files{{"nodes", nodes.path()}, {"edges", edges.path()}, {"rate", rate.path()}};
  for (const RowOrder order : {RowOrder::random, RowOrder::epochs, RowOrder::in_order}) {
    const auto batches = open_batches(with_files(ordered(order, 7), files), graph);
    for (const uint64_t batch : {0, 1, 9}) {
      const Filled filled = fill(*batches, batch, graph);
      CHECK(filled.at("nodes") == std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
      CHECK(filled.at("edges") == std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
      CHECK(filled.at("rate") == std::vector<double>{0});
    }
    CHECK(has(batches->origin(3, "edges", 7), "element 7 of "));
  }
  CHECK_THROWS_WITH_AS(open_batches(with_files(ordered(RowOrder::random, 0, 0.5), files), graph),
                       "--val-fraction: the arrays have the inputs' own shapes and are one batch as they are: no rows can be kept back",
                       Error);
  // One of them has rows: all are taken so, which the others do not fit.
  const NpyTestFile more("more.npy", counting_array<float>({8, 3}));
  CHECK(has(
      error_of(graph, {{"nodes", more.path()}, {"edges", edges.path()}, {"rate", rate.path()}}),
      "the first axes of nodes and edges have sizes 4 and 5: no batch of rows is both; arrays in the inputs' own shapes are taken whole"));
}

TEST_CASE("an element of a batch is found again in its array") {
  const NpyTestFile x("x.npy", counting_array<float>({9, 3})), y("y.npy", counting_array<int64_t>({9}));
  for (const RowOrder order : {RowOrder::random, RowOrder::epochs}) {
    const auto batches = open_batches(with_files(ordered(order, 3), {{"x", x.path()}, {"y", y.path()}}), kInputs);
    for (const uint64_t batch : {0, 5})
      for (const uint64_t element : {0, 4, 11}) {
        const auto value = static_cast<uint64_t>(fill(*batches, batch, kInputs).at("x")[element]);
        CHECK(has(batches->origin(batch, "x", element), fmt::format("element {} of row {} of ", value % 3, value / 3)));
      }
    CHECK(batches->origin(0, "z", 0).empty());
  }
}
