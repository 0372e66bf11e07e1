// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/prefetch.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstring>

#include "data.h"

using namespace einc;

namespace {

// The batch's number in every element of its one input; slow ones, and one that fails.
class Numbers : public Batches {
 public:
  explicit Numbers(uint64_t failing = ~uint64_t{0}) : failing_(failing) {}
  void fill(uint64_t batch, std::span<const InputSlot> inputs) const override {
    if (batch == failing_) throw RuntimeFailure(FailureKind::data, "batch of failure");
    if (batch % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    for (int64_t i = 0; i < inputs[0].info->count(); ++i) std::memcpy(inputs[0].memory + i * 8, &batch, sizeof batch);
  }
  std::string origin(uint64_t, std::string_view, uint64_t) const override { return ""; }
  uint64_t batches_per_epoch() const override { return 0; }
  std::string description() const override { return "numbers"; }

 private:
  uint64_t failing_;
};

const std::vector<TensorInfo> kWanted{input_of("n", {1000}, DType::i64)};

bool holds(const InputSlot& slot, int64_t number) {
  const std::span<const int64_t> values = TensorView(slot.info->dtype, slot.info->shape, slot.memory).as<int64_t>();
  return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == number; });
}

}  // namespace

TEST_CASE("batches come in order, and stay whole until the next is asked for") {
  Prefetch prefetch(std::make_shared<Numbers>(), kWanted, 40);
  for (int64_t n = 40; n < 300; ++n) {
    const std::span<const InputSlot> inputs = prefetch.next();
    REQUIRE(inputs.size() == 1);
    CHECK(reinterpret_cast<uintptr_t>(inputs[0].memory) % 64 == 0);
    REQUIRE(holds(inputs[0], n));
    if (n % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    REQUIRE(holds(inputs[0], n));
  }
}

TEST_CASE("batches on a second thread are those of one thread") {
  const TestFile file("train.bin", counting_tokens(5000));
  DataSettings settings = ordered(RowOrder::epochs, 4);
  settings.files = {{"tokens", file.path()}};
  const std::vector<TensorInfo> inputs{input_of("tokens", {4, 70}), input_of("targets", {4, 70})};
  const auto batches = open_batches(settings, inputs);
  Prefetch prefetch(batches, inputs, 7);
  for (uint64_t n = 7; n < 60; ++n) {
    const Filled expected = fill(*batches, n, inputs);
    for (const InputSlot& slot : prefetch.next())
      CHECK(TensorView(slot.info->dtype, slot.info->shape, slot.memory).to_doubles() == expected.at(slot.info->name));
  }
}

TEST_CASE("a failure comes where its batch is asked for, and stays") {
  Prefetch prefetch(std::make_shared<Numbers>(2), kWanted, 0);
  CHECK(holds(prefetch.next()[0], 0));
  CHECK(holds(prefetch.next()[0], 1));
  for (int i = 0; i < 3; ++i) CHECK(failure_of([&] { prefetch.next(); }) == "batch of failure");
}

TEST_CASE("it may be dropped at any time") {
  for (int taken = 0; taken < 5; ++taken) {
    Prefetch prefetch(std::make_shared<Numbers>(3), kWanted, 0);
    for (int i = 0; i < std::min(taken, 3); ++i) prefetch.next();
  }
}
