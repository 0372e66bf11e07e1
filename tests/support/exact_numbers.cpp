// SPDX-License-Identifier: Apache-2.0
#include "tests/support/exact_numbers.h"

#include "compiler/precision/assign.h"
#include "compiler/simplify/simplify.h"

namespace einc {
namespace {

Graph simplified(const std::string& text) { return assign_precision(simplify(compile_text(text), Roots::training), Policy::f32); }

}  // namespace

// 2^53 + 1 is no double: 2^53 is. Values of Python's integers, products modulo 2^64.
void check_wide_integers(const Backend& backend, std::span<const Scheduling> ways) {
  const Graph graph = simplified(R"(
dim n = 3
input x: i64[n]
output equal = x == 9007199254740993
output less = x < 9007199254740993
output sum = x + 9007199254740993
output difference = 9007199254740993 - x
output product = x * 4611686018427387905
output larger = max(x, 9007199254740993)
output chosen = where(x > 0, 9007199254740993, x)
output padded = pad(x, n = (1, 0), value = 9007199254740993)
output folded = cast(1, i64) * 9007199254740993 == 9007199254740992
output one = 9007199254740993 - cast(9007199254740992, i64)
output quotient = x * 512 // 9007199254740993
output rest = (x - 4) % 9007199254740993
output held = clamp(x, 9007199254740993, 9007199254740995)
output runs = cumprod(x - 9007199254740991, n)
output order = sort(x, n, descending = true)
)");
  using Ints = std::vector<int64_t>;
  constexpr int64_t kOdd = 9007199254740993, kEven = 9007199254740992;
  const std::pair<const char*, Ints> wanted[] = {{"equal", {0, 1, 0}},
                                                 {"less", {1, 0, 1}},
                                                 {"sum", {18014398509481985, 18014398509481986, kEven}},
                                                 {"difference", {1, 0, 9007199254740994}},
                                                 {"product", {kEven, 4620693217682128897, -4611686018427387905}},
                                                 {"larger", {kOdd, kOdd, kOdd}},
                                                 {"chosen", {kOdd, kOdd, -1}},
                                                 {"padded", {kOdd, kEven, kOdd, -1}},
                                                 {"folded", {0}},
                                                 {"one", {1}},
                                                 {"quotient", {511, 512, -1}},
                                                 {"rest", {9007199254740988, 9007199254740989, 9007199254740988}},
                                                 {"held", {kOdd, kOdd, kOdd}},
                                                 {"runs", {1, 2, -18014398509481984}},
                                                 {"order", {kOdd, kEven, -1}}};
  const TensorMap inputs{{Name("x"), Tensor::of_ints({3}, {kEven, kOdd, -1}, DType::i64)}};
  for (const Scheduling& scheduling : ways) {
    const CpuRun run = backend(graph, {}, inputs, {}, {}, scheduling);
    REQUIRE(run.outputs.size() == std::size(wanted));
    for (size_t k = 0; k < std::size(wanted); ++k) {
      CAPTURE(wanted[k].first);
      CHECK(run.outputs[k].second.ints == wanted[k].second);
    }
  }
}

// Against sums in long double of the very same floats: as near as f32 can hold them, at every place.
void check_running_sums(const Backend& backend, std::span<const Scheduling> ways) {
  constexpr size_t kCount = 200'001;
  const Graph graph = simplified(R"(
dim n = 200001
input x: f32[n]
output y = cumsum(x, n)
output d = grad(sum(cumsum(x, n)), x)
)");
  Tensor x = Tensor::zeros(DType::f32, {kCount});
  uint32_t bits = 1;
  for (double& v : x.reals) {
    bits = bits * 1664525 + 1013904223;  // of Numerical Recipes
    v = static_cast<double>(bits >> 8) * 0x1p-24;
  }
  for (const Scheduling& scheduling : ways) {
    const CpuRun run = backend(graph, {}, {{Name("x"), x}}, {}, {}, scheduling);
    long double total = 0;
    double worst = 0;
    for (size_t i = 0; i < kCount; ++i) {
      total += x.reals[i];
      worst = std::max(worst, std::fabs(run.outputs[0].second.reals[i] / static_cast<double>(total) - 1));
    }
    CHECK(worst < 6.1e-8);  // half a unit in the last place of f32: 2^-24
    CHECK(run.outputs[1].second.reals.front() == 200'001);
    CHECK(run.outputs[1].second.reals.back() == 1);
  }
}

}  // namespace einc
