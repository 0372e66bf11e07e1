// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record_batches.h"

#include <doctest/doctest.h>

#include <cstring>

#include "data.h"
#include "runtime/data/npz.h"

using namespace einc;

namespace {

// Element e of input i at batch n is 1000 n + 100 i + e.
class Numbered : public Batches {
 public:
  void fill(uint64_t batch, std::span<const InputSlot> inputs) const override {
    for (size_t i = 0; i < inputs.size(); ++i)
      for (int64_t e = 0; e < inputs[i].info->count(); ++e) {
        const auto value = static_cast<int32_t>(1000 * batch + 100 * i + static_cast<uint64_t>(e));
        std::memcpy(inputs[i].memory + e * 4, &value, 4);
      }
  }
  std::string origin(uint64_t, std::string_view, uint64_t) const override { return ""; }
  uint64_t batches_per_epoch() const override { return 0; }
  std::string description() const override { return "numbers"; }
};

}  // namespace

TEST_CASE("recorded batches are what the inputs held, batch after batch") {
  const TestFile file("recorded.npz", "");
  record_batches(file.path(), Numbered(), {input_of("a", {2, 3}), input_of("b", {})}, 4);
  const NamedArrays arrays = read_npz(file.path());
  REQUIRE(arrays.size() == 2);
  CHECK(arrays[0].first == "a");
  CHECK(arrays[0].second.shape == std::vector<int64_t>{4, 2, 3});
  CHECK(arrays[1].first == "b");
  CHECK(arrays[1].second.shape == std::vector<int64_t>{4});
  const auto at = [&](size_t array, size_t element) {
    int32_t value;
    std::memcpy(&value, arrays[array].second.bytes.data() + element * 4, 4);
    return value;
  };
  CHECK(at(0, 0) == 0);
  CHECK(at(0, 5) == 5);
  CHECK(at(0, 6) == 1000);
  CHECK(at(0, 23) == 3005);
  CHECK(at(1, 0) == 100);
  CHECK(at(1, 3) == 3100);
}
