// SPDX-License-Identifier: Apache-2.0
// A table's gradient on the emulated GPU where a block has several of its rows.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/kernel_programs.h"

using namespace einc;

TEST_CASE("cuda: rows of a large table that many positions meet") {
  // Ids from 0 to 2,999, every other one of them one of three rows.
  for (const char* dtype : {"f32", "bf16"}) {
    const std::string text = fmt::format(R"(dim n = 300, rows = 3000, wide = 5
input x: f32[n wide]
param table: [rows wide] ~ normal(std = 1)
ids = where(iota(n) % 2 == 0, iota(n) % 3 * 1056, iota(n) * 9 + 300)
loss = sum(cast(table[rows = ids], {}) * x)
minimize loss using sgd(lr = 0.1)
)",
                                         dtype);
    CAPTURE(text);
    CHECK(cuda_disagreement(text, 3) == "");
  }
}
