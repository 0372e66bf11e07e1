// SPDX-License-Identifier: Apache-2.0
// Passes over one kernel, from text to text.
#include <doctest/doctest.h>

#include "compiler/lower/collapse.h"
#include "compiler/lower/contraction.h"
#include "compiler/lower/divide_reductions.h"
#include "compiler/lower/exact_casts.h"
#include "compiler/lower/flatten_sums.h"
#include "compiler/lower/keep_rows.h"
#include "compiler/lower/points_first.h"
#include "compiler/lower/widen_lanes.h"
#include "tests/support/kernel_text.h"

using namespace einc;

namespace {

std::string after(void (*pass)(Kernel&), std::string_view text) {
  Kernel kernel = kernel_of(text);
  pass(kernel);
  CHECK(verify(kernel) == "");
  return to_string(kernel);
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("collapse: any number of loops that every index walks as one") {
  CHECK(after(collapse_axes, R"(
axes a0=3 a1=4 a2=5 a3=6 a4=7 a5=2
outer a0 a1 a2 a3 a4 a5
b0: read f32[5040]
b1: write f32[5040]
v0: f32 = b0[1680*a0 + 420*a1 + 84*a2 + 14*a3 + 2*a4 + a5]
stage
  b1[1680*a0 + 420*a1 + 84*a2 + 14*a3 + 2*a4 + a5] = v0
)") == to_string(kernel_of(R"(
axes a0=5040
outer a0
b0: read f32[5040]
b1: write f32[5040]
v0: f32 = b0[a0]
stage
  b1[a0] = v0
)")));
}

TEST_CASE("collapse: loops that some index takes apart stay") {
  const std::string transposed = R"(axes a0=3 a1=4 a2=5
outer a0 a1 a2
b0: read f32[60]
b1: write f32[60]
v0: f32 = b0[20*a0 + a1 + 4*a2]
stage
  b1[20*a0 + 5*a1 + a2] = v0
)";
  CHECK(after(collapse_axes, transposed) == to_string(kernel_of(transposed)));
  // A loop of a stage and an outer one are no neighbours, nor are both sides of a range.
  const std::string row = R"(axes a0=3 a1=4
outer a0
b0: read f32[12]
b1: write f32[3]
v0: f32 = b0[4*a0 + a1]
v1: f32 = r0
stage a1
  r0: f32 = sum v0
stage
  b1[a0] = v1
)";
  CHECK(after(collapse_axes, row) == to_string(kernel_of(row)));
  const std::string guarded = R"(axes a0=3 a1=4
outer a0 a1
b0: read f32[12]
b1: write f32[12]
v0: f32 = b0[4*a0 + a1] if 0 <= a1 < 3
stage
  b1[4*a0 + a1] = v0
)";
  CHECK(after(collapse_axes, guarded) == to_string(kernel_of(guarded)));
}

TEST_CASE("contractions: rows, columns and depth") {
  CHECK(holds(after(find_contraction, kProductText), "contraction r0 = v0 * v1 batch  rows a0 columns a1 depth a2\n"));
}

TEST_CASE("keep_rows: exponentials that are summed and then divided are kept") {
  const std::string softmax = R"(
axes a0=8 a1=64
outer a0
b0: read f32[512]
b1: write f32[512]
v0: f32 = b0[64*a0 + a1]
v1: f32 = exp(v0)
v2: f32 = r0
v3: f32 = div(v1, v2)
stage a1
  r0: f32 = sum v1
stage a1
  b1[64*a0 + a1] = v3
)";
  const std::string kept = after(keep_rows, softmax);
  CHECK(holds(kept, "b2: scratch f32[64]\n"));
  CHECK(holds(kept, "  b2[a1] = v"));
}

TEST_CASE("points_first: a row's sum is stored before the row, which does not need it") {
  const std::string text = R"(axes a0=8 a1=64
outer a0
b0: read f32[512]
b1: write f32[512]
b2: write f32[8]
v0: f32 = b0[64*a0 + a1]
v1: f32 = r0
v2: f32 = exp(v0)
stage a1
  r0: f32 = sum v0
stage a1
  b1[64*a0 + a1] = v2
stage
  b2[a0] = v1
)";
  const std::string moved = after(store_points_first, text);
  CHECK(moved.find("b2[a0] = v1") < moved.find("b1[64*a0 + a1] = v2"));
  // Of one stage the sum is made there: it cannot come first.
  const std::string together = R"(axes a0=8 a1=64
outer a0
b0: read f32[512]
b1: write f32[512]
b2: write f32[8]
v0: f32 = b0[64*a0 + a1]
v1: f32 = r0
stage a1
  r0: f32 = sum v0
  b1[64*a0 + a1] = v0
stage
  b2[a0] = v1
)";
  CHECK(after(store_points_first, together) == to_string(kernel_of(together)));
}

TEST_CASE("divide_reductions: a long sum in parts, the rest adds them") {
  const Kernel sum = kernel_of(R"(
axes a0=1048576
outer
b0: read f32[1048576]
b1: write f32[1]
v0: f32 = b0[a0]
v1: f32 = r0
stage a0
  r0: f32 = sum v0
stage
  b1[0] = v1
)");
  const std::vector<DividedKernel> divided = divide_reductions(sum);
  REQUIRE(divided.size() == 2);
  const Kernel &parts = divided[0].kernel, &rest = divided[1].kernel;
  CHECK(trips(parts, bits(parts.outer)) * parts.extent(parts.stages[0].axes[0]) == 1048576);
  CHECK(trips(parts, bits(parts.outer)) == rest.extent(rest.stages[0].axes[0]));
  KernelTarget few;
  few.divide_rows.elements = 1 << 20;  // not worth a launch of its own
  CHECK(divide_reductions(sum, few).size() == 1);
}

// Of one row, the kernel that leaves sums for each part has no outer loop, as kernels of whole sums.
TEST_CASE("flatten_sums: sums of parts stay as they are") {
  const std::string row = R"(axes a0=40 a1=2
outer 
part a1
b0: read f32[40]
b1: read f32[40]
b2: write f32[80]
b3: write f32[40]
v0: f32 = b0[a0]
v1: f32 = b1[a0]
v2: f32 = r0
v3: f32 = r1
v4: f32 = sub(v0, v2)
v5: f32 = sub(v4, v3)
stage a0
  r0: f32 = sum v0
  r1: f32 = sum v1
  b2[a0 + 40*a1] = sum of v1
stage a0
  b3[a0] = v5
)";
  CHECK(after(flatten_sums, row) == to_string(kernel_of(row)));
}

TEST_CASE("widen_lanes: short innermost loops and the one around them, where results lie side by side along both") {
  const auto widened = [](std::string_view text) { return after([](Kernel& kernel) { widen_lanes(kernel, 16); }, text); };
  // Four channels of each of eight groups, times the group's number and the channel's.
  const std::string groups = R"(axes a0=9 a1=8 a2=4
outer a0 a1 a2
b0: read f32[288]
b1: read f32[8]
b2: write f32[288]
b3: read f32[32]
v0: f32 = b0[32*a0 + 4*a1 + a2]
v1: f32 = b1[a1]
v2: f32 = b3[4*a1 + a2]
v3: f32 = mul(v0, v1)
v4: f32 = mul(v2, v3)
stage
  b2[32*a0 + 4*a1 + a2] = v4
)";
  const std::string both = widened(groups);
  CHECK(holds(both, "outer a0 a3\n"));
  CHECK(holds(both, "a3=32"));
  CHECK(holds(both, "b0[32*a0 + a3]"));
  CHECK(holds(both, "div 4"));
  CHECK(holds(both, "  b2[32*a0 + a3] = "));
  // Not of results that lie apart, of loops as long as a vector, nor where half of what is read would be gathered.
  const std::pair<const char*, const char*> others[] = {
      {"  b2[32*a0 + 4*a1 + a2]", "  b2[32*a0 + a1 + 8*a2]"}, {"a2=4\n", "a2=16\n"}, {"b0[32*a0 + 4*a1 + a2]", "b0[32*a0 + a1 + 8*a2]"}};
  for (const auto& [from, to] : others) {
    std::string other = groups;
    other.replace(other.find(from), std::string_view(from).size(), to);
    if (std::string_view(from) == "a2=4\n")
      for (size_t at; (at = other.find("288")) != std::string::npos;) other.replace(at, 3, "2000");
    CHECK(widened(other) == to_string(kernel_of(other)));
  }
}

// A score of bf16, scaled by 2^-3 and masked, is one again; scaled by 0.3 it is not, nor is one of f16, whose small numbers lose digits.
TEST_CASE("exact_casts: what is a bf16 number already is not rounded") {
  const auto masked = [](const char* dtype, const char* scale) {
    return fmt::format(R"(axes a0=4 a1=8 a2=8
outer a0
b0: read f32[32]
b1: write f32[4]
v0: {0} = b0[8*a0 + a1]
v1: f32 = {1}
v2: f32 = rsqrt(v1)
v3: f32 = mul(v0, v2)
v4: i32 = index a1
v5: i32 = 3
v6: bool = less(v4, v5)
v7: f32 = -inf
v8: {0} = where(v6, v3, v7)
v9: f32 = r0
stage a1
  r0: f32 = max v8
stage
  b1[a0] = v9
)",
                       dtype, scale);
  };
  CHECK(holds(after(drop_exact_casts, masked("bf16", "0x1p+6")), "v8: f32 = where"));
  CHECK(holds(after(drop_exact_casts, masked("bf16", "0x1p+6")), "v0: bf16 = "));
  CHECK(holds(after(drop_exact_casts, masked("bf16", "0x1.8p+5")), "v8: bf16 = where"));
  CHECK(holds(after(drop_exact_casts, masked("f16", "0x1p+6")), "v8: f16 = where"));
}

// What a product multiplies stays bf16, or tensor cores would not take it.
TEST_CASE("exact_casts: factors of attention's products keep their format") {
  const std::string text = after(drop_exact_casts, R"(axes a0=2 a1=64 a2=64 a3=16 a4=16
outer
b0: read bf16[2048]
b1: write bf16[2048]
v0: i32 = index a2
v1: i32 = index a1
v2: bool = less_equal(v0, v1)
v3: bf16 = b0[1024*a0 + 16*a1 + a3]
v4: bf16 = b0[1024*a0 + 16*a2 + a3]
v5: f32 = mul(v3, v4)
v6: bf16 = r0
v7: f32 = 0x0p+0
v8: bf16 = where(v2, v6, v7)
v9: bf16 = b0[1024*a0 + 16*a2 + a4]
v10: f32 = mul(v8, v9)
v11: bf16 = r1
attention batch a0 turns  row a1 key a2 in blocks of 32 rows and 12 keys
scores over a3
  r0: f32 = sum v5 = v3 * v4
mix over a2 for a4
  r1: f32 = sum v10 = v8 * v9
  b1[1024*a0 + 16*a1 + a4] = v11
)");
  CHECK(holds(text, "v8: bf16 = where"));
}
