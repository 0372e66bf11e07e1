// SPDX-License-Identifier: Apache-2.0
// The random sequences of the language on the GPU, bit for bit.
#include <doctest/doctest.h>

#include "runtime/base/random.h"
#include "tests/cuda/device/run_kernel.h"

namespace einc {

TEST_CASE("random words, uniform and normal numbers are the processor's") {
  constexpr int64_t kCount = 1 << 14;
  struct {
    const char* stream;
    uint64_t step, from;
  } const draws[] = {{"x", 0, 0}, {"dropout.3", 7, 123456789}, {"a long name of a stream", uint64_t{1} << 40, (uint64_t{1} << 34) - 5000}};
  int number = 0;
  for (const auto& [stream, step, from] : draws) {
    const PhiloxKey key = random_key(42, stream);
    const uint64_t packed = uint64_t{key[1]} << 32 | key[0];
    const auto results =
        for_each_element(fmt::format("draw{}", number++),
                         fmt::format("const u64 at = {}ull + i;\ny0[i] = i32(random_word({}ull, {}ull, at));\n"
                                     "y1[i] = random_uniform({}ull, {}ull, at);\ny2[i] = random_normal({}ull, {}ull, at);\n"
                                     "y3[i] = random_kept({}ull, {}ull, at, 13421772u);\ny4[i] = random_bits({}ull, {}ull, at);\n"
                                     "y5[i] = random_gumbel({}ull, {}ull, at);",
                                     from, packed, step, packed, step, packed, step, packed, step, packed, step, packed, step),
                         {},
                         {{DType::i32, kCount},
                          {DType::f64, kCount},
                          {DType::f64, kCount},
                          {DType::i32, kCount},
                          {DType::i64, kCount},
                          {DType::f64, kCount}});
    const auto words = elements_of<uint32_t>(results[0]);
    const auto uniform = elements_of<double>(results[1]), normal = elements_of<double>(results[2]);
    const auto kept = elements_of<int32_t>(results[3]);
    const auto bits = elements_of<int64_t>(results[4]);
    const auto gumbel = elements_of<double>(results[5]);
    size_t wrong = 0;
    for (uint64_t i = 0; i < kCount; ++i) {
      const uint64_t at = from + i;
      const double u = random_uniform(key, step, at);
      wrong += words[i] != random_words(key, step, at / 4)[at % 4];
      wrong += uniform[i] != u;
      wrong += normal[i] != random_normal(key, step, at);
      wrong += (kept[i] != 0) != (u < 13421772 * 0x1p-24);
      wrong += bits[i] != random_bits(key, step, at);
      wrong += gumbel[i] != random_gumbel(key, step, at);
    }
    CAPTURE(stream);
    CHECK(wrong == 0);
  }
}

}  // namespace einc
