// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/token_batches.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include <einc/error.h>
#include "data.h"

using namespace einc;

namespace {

const std::vector<TensorInfo> kTokenInputs{input_of("tokens", {4, 8}), input_of("targets", {4, 8})};

std::shared_ptr<const Batches> open(const std::string& path, DataSettings settings = {},
                                    const std::vector<TensorInfo>& inputs = kTokenInputs, DataPart part = DataPart::training) {
  settings.files = {{"tokens", path}};
  return open_batches(settings, inputs, part);
}

std::string usage_error(const DataSettings& settings, const std::vector<TensorInfo>& inputs) {
  try {
    open_batches(settings, inputs);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("windows lie within the file, and the next tokens are the next") {
  const TestFile file("train.bin", counting_tokens(100));
  for (const RowOrder order : {RowOrder::random, RowOrder::epochs, RowOrder::in_order}) {
    const auto batches = open(file.path(), ordered(order));
    std::vector<double> starts;
    for (uint64_t n = 0; n < 400; ++n) {
      const Filled values = fill(*batches, n, kTokenInputs);
      for (size_t i = 0; i < 32; ++i) {
        const double start = values.at("tokens")[i / 8 * 8];
        if (i % 8 == 0) starts.push_back(start);
        REQUIRE(values.at("tokens")[i] == start + static_cast<double>(i % 8));
        REQUIRE(values.at("targets")[i] == values.at("tokens")[i] + 1);
      }
    }
    // The first and the last window that there are.
    CHECK(*std::min_element(starts.begin(), starts.end()) == 0);
    CHECK(*std::max_element(starts.begin(), starts.end()) == (order == RowOrder::random ? 91 : 88));
  }
}

TEST_CASE("every window of an epoch comes once") {
  const TestFile file("train.bin", counting_tokens(100));
  const auto batches = open(file.path(), ordered(RowOrder::epochs, 5));
  CHECK(batches->batches_per_epoch() == 3);
  std::vector<double> starts;
  for (uint64_t n = 0; n < 3; ++n)
    for (size_t row = 0; row < 4; ++row) starts.push_back(fill(*batches, n, kTokenInputs).at("tokens")[row * 8]);
  std::sort(starts.begin(), starts.end());
  CHECK(starts == std::vector<double>{0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88});
}

TEST_CASE("batch n is the same whatever was asked before, and its rows whatever the size of a batch") {
  const TestFile file("train.bin", counting_tokens(1000));
  const std::vector<TensorInfo> halves{input_of("tokens", {2, 8}), input_of("targets", {2, 8})};
  for (const RowOrder order : {RowOrder::random, RowOrder::epochs}) {
    const auto batches = open(file.path(), ordered(order, 5)), again = open(file.path(), ordered(order, 5)),
               other = open(file.path(), ordered(order, 6)), micro = open(file.path(), ordered(order, 5), halves);
    const Filled tenth = fill(*batches, 10, kTokenInputs);
    fill(*again, 999, kTokenInputs);
    CHECK(fill(*again, 10, kTokenInputs) == tenth);
    CHECK(fill(*other, 10, kTokenInputs) != tenth);
    std::vector<double> joined = fill(*micro, 20, halves).at("tokens");
    const std::vector<double> second = fill(*micro, 21, halves).at("tokens");
    joined.insert(joined.end(), second.begin(), second.end());
    CHECK(joined == tenth.at("tokens"));
  }
}

TEST_CASE("the validation part is the tail, as nanoGPT splits") {
  const TestFile file("all.bin", counting_tokens(999));
  const DataSettings settings = ordered(RowOrder::in_order, 0, 0.1);
  const auto training = open(file.path(), settings), validation = open(file.path(), settings, kTokenInputs, DataPart::validation);
  CHECK(training->batches_per_epoch() == 28);  // 899 tokens: 112 windows
  CHECK(fill(*training, 27, kTokenInputs).at("targets").back() == 896);
  CHECK(fill(*validation, 0, kTokenInputs).at("tokens").front() == 899);
  CHECK(validation->batches_per_epoch() == 3);
  CHECK(training->description() != validation->description());
}

TEST_CASE("inputs of other integer dtypes take tokens that they hold") {
  const TestFile file("train.bin", counting_tokens(300));
  for (const DType dtype : {DType::i64, DType::i32, DType::u16}) {
    const std::vector<TensorInfo> inputs{input_of("tokens", {4, 8}, dtype)};
    CHECK(fill(*open(file.path(), ordered(RowOrder::in_order), inputs), 8, inputs).at("tokens").back() == 287);
  }
  const std::vector<TensorInfo> bytes{input_of("tokens", {4, 8}, DType::u8)};
  const auto batches = open(file.path(), ordered(RowOrder::in_order), bytes);
  CHECK(fill(*batches, 7, bytes).at("tokens").back() == 255);
  CHECK(failure_of([&] { fill(*batches, 8, bytes); }).find("train.bin: token 256 is 256, more than input tokens of dtype u8 holds") !=
        std::string::npos);
}

TEST_CASE("which input gets the next tokens") {
  const TestFile file("train.bin", counting_tokens(100));
  const auto with = [&](std::vector<TensorInfo> inputs, const std::string& next = "", const std::string& name = "tokens") {
    inputs.insert(inputs.begin(), input_of("tokens", {4, 8}));
    DataSettings settings;
    settings.files = {{name, file.path()}};
    settings.next = next;
    return usage_error(settings, inputs);
  };
  CHECK(with({}).empty());
  CHECK(with({input_of("y", {4, 8}, DType::i64)}).empty());
  CHECK(with({input_of("y", {4, 8}), input_of("z", {4, 8})}) ==
        "the tokens that follow those of tokens may go to y and z: say which by --next NAME");
  CHECK(with({input_of("y", {4, 8}), input_of("z", {4, 8})}, "z").find("input y gets no values from tokens=") == 0);
  CHECK(with({input_of("y", {4, 8})}, "x") == "--next x: the program has no input of that name; it has tokens and y");
  CHECK(with({input_of("y", {8, 4})}, "y") == "--next y: not another input of integers in the shape of tokens");
  CHECK(with({input_of("y", {8, 4})}).find("input y gets no values from tokens=") == 0);
  CHECK(with({}, "", "x") == "--data x: the program has no input of that name; it has tokens");
  CHECK(with({input_of("y", {4, 8}, DType::f32)}, "", "y").find("--data y: a token file gives windows to an input of integers") == 0);
  CHECK(usage_error({}, kTokenInputs).find("no data: say which file") == 0);
}

TEST_CASE("a program without inputs draws its examples and needs no file") {
  CHECK(open_batches({}, {})->description() == "drawn by the program");
  DataSettings kept_back;
  kept_back.validation_fraction = 0.1;
  CHECK(usage_error(kept_back, {}) == "--val-fraction: the program has no inputs whose data could be kept back");
}

TEST_CASE("a file of too few tokens is refused, one of just enough is not") {
  const TestFile eight("eight.bin", counting_tokens(8)), nine("nine.bin", counting_tokens(9));
  CHECK(failure_of([&] { open(eight.path()); }).find("eight.bin: 8 tokens are too few for a window of 8 and the one that follows") !=
        std::string::npos);
  CHECK(fill(*open(nine.path()), 3, kTokenInputs).at("targets").back() == 8);
}

TEST_CASE("descriptions tell apart what gives other batches") {
  const TestFile file("train.bin", counting_tokens(100)), copy("copy.bin", counting_tokens(100)), other("other.bin", counting_tokens(101));
  const std::string text = open(file.path())->description();
  CHECK(text.find("tokens, targets: tokens 0 to 100 of 100 u16, hash ") == 0);
  CHECK(text.find("; 4 windows of 8, order random, seed 0") != std::string::npos);
  CHECK(open(copy.path())->description() == text);
  CHECK(open(other.path())->description() != text);
  CHECK(open(file.path(), ordered(RowOrder::random, 1))->description() != text);
  CHECK(open(file.path(), ordered(RowOrder::epochs))->description() != text);
}

TEST_CASE("a token of a batch is found again in its file") {
  const TestFile file("train.bin", counting_tokens(100)), text("words.txt", std::string(200, 'a') + "\n" + std::string(199, 'b'));
  for (const RowOrder order : {RowOrder::random, RowOrder::epochs}) {
    const auto batches = open(file.path(), ordered(order, 2));
    const Filled values = fill(*batches, 3, kTokenInputs);
    for (const size_t i : {0, 9, 31})
      for (const std::string input : {"tokens", "targets"})
        CHECK(batches->origin(3, input, i) == fmt::format("token {} of {}", values.at(input)[i], file.path()));
    CHECK(batches->origin(3, "other", 0).empty());
  }
  CHECK(failure_of([&] { open(text.path(), ordered(RowOrder::in_order)); }).find("it is text: `einc tokenize FILE -o train.bin`") !=
        std::string::npos);
}
