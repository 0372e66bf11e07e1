// SPDX-License-Identifier: Apache-2.0
// Rows of odd length on the emulated GPU: they start anywhere in a pack of memory, and are read and written in packs all the same.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/kernel_programs.h"

using namespace einc;

namespace {

std::string softmax_of(int64_t rows, int64_t cols, const char* dtype) {
  return fmt::format(R"(dim rows = {}, cols = {}
input x: {}[rows cols]
output y: {}[rows cols] = cast(softmax(x, cols), {})
)",
                     rows, cols, dtype, dtype, dtype);
}

// What is read beside the rows starts elsewhere, or is of another dtype.
std::string scaled_of(int64_t rows, int64_t cols, const char* dtype) {
  return fmt::format(R"(dim rows = {}, cols = {}
input x: {}[rows cols]
input scale: f32[cols]
input mask: bool[rows cols]
input from: i32[rows]
input table: f32[rows cols]
w = where(mask, cast(x, f32) * scale + table[rows = from], 0)
output y: {}[rows cols] = cast(w - mean(w, cols), {})
output largest = max(w, cols)
output at = argmax(w, cols)
)",
                     rows, cols, dtype, dtype, dtype);
}

std::string classifier_of(int64_t rows, int64_t classes) {
  return fmt::format(R"(dim batch = {}, wide = 24, classes = {}
input x: f32[batch wide]
input label: i32[batch]
param w: [wide classes] ~ normal(std = 0.3)
output logits = einsum(x, w, "batch wide, wide classes -> batch classes")
loss = mean(cross_entropy(logits, label, classes))
minimize loss using sgd(lr = 0.5)
)",
                     rows, classes);
}

bool packs_from_anywhere(const std::string& text) {
  std::string problem;
  const auto wanted = interpret_text(text, 1, problem);
  REQUIRE(problem == "");
  const auto program = compile_for_cuda(wanted->graph, {}, {});
  return std::ranges::any_of(program->executable.texts, [](const std::string& t) { return t.find("row_start") != std::string::npos; });
}

}  // namespace

TEST_CASE("cuda: rows that start anywhere in a pack") {
  for (const char* dtype : {"f32", "bf16"})
    for (const int64_t cols : {259, 1001, 2049, 4999}) {
      for (const std::string& text : {softmax_of(5, cols, dtype), scaled_of(3, cols, dtype)}) {
        CAPTURE(text);
        CHECK(cuda_disagreement(text, 2) == "");
        CHECK(packs_from_anywhere(text));
      }
    }
  for (const std::string& text : {classifier_of(7, 1033), softmax_of(1, 4097, "f32"), softmax_of(37, 257, "bf16")}) {
    CAPTURE(text);
    CHECK(cuda_disagreement(text, 2) == "");
    CHECK(packs_from_anywhere(text));
  }
}

TEST_CASE("cuda: rows of whole packs, and short ones, need no such start") {
  CHECK(!packs_from_anywhere(softmax_of(5, 1024, "bf16")));
  CHECK(!packs_from_anywhere(softmax_of(5, 1028, "bf16")));
  CHECK(!packs_from_anywhere(softmax_of(5, 37, "f32")));
}
