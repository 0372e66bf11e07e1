// SPDX-License-Identifier: Apache-2.0
// Predicted cycles of kernels written as text, counted by hand from the costs that loop_cycles.cpp states: a load or an op of a register
// takes half a cycle, a store one, an iteration half of one, the entry into a loop three.
#include "compiler/lower/kernel_cycles.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/fuse/form_graph.h"
#include "compiler/lower/contraction.h"
#include "compiler/lower/kernel_work.h"
#include "compiler/pipeline/pipeline.h"
#include "tests/support/kernel_text.h"

using namespace einc;

namespace {

constexpr Processor kWide{.vector_bits = 512, .vector_registers = 32}, kNarrow{.vector_bits = 256, .vector_registers = 16};

KernelCycles cycles_of(const Kernel& kernel, const Processor& processor) {
  return kernel_cycles(kernel, plan_on_processor(kernel, processor, std::vector<bool>(kernel.buffers.size(), false)), processor);
}

double cycles(const std::string& text, const Processor& processor = kWide) {
  const KernelCycles c = cycles_of(kernel_of(text), processor);
  CHECK(!c.in_tiles);
  return c.others;
}

// y = x + x, of n numbers.
std::string twice(int64_t n, const char* dtype = "f32") {
  return fmt::format(
      "axes a0={0}\nouter a0\nb0: read {1}[{0}]\nb1: write {1}[{0}]\nv0: {1} = b0[a0]\nv1: {1} = add(v0, v0)\n"
      "stage \n  b1[a0] = v1\n",
      n, dtype);
}

// The sum of each row.
std::string row_sums(int64_t rows, int64_t columns) {
  return fmt::format(
      "axes a0={0} a1={1}\nouter a0\nb0: read f32[{2}]\nb1: write f32[{0}]\nv0: f32 = b0[{1}*a0 + a1]\nv1: f32 = r0\n"
      "stage a1\n  r0: f32 = sum v0\nstage \n  b1[a0] = v1\n",
      rows, columns, rows * columns);
}

// The sum of each of 16 columns, one vector of sums.
std::string column_sums(int64_t rows) {
  return fmt::format(
      "axes a0=16 a1={0}\nouter a0\nb0: read f32[{1}]\nb1: write f32[16]\nv0: f32 = b0[a0 + 16*a1]\nv1: f32 = r0\n"
      "stage a1\n  r0: f32 = sum v0\nstage \n  b1[a0] = v1\n",
      rows, 16 * rows);
}

// Numbers of a table at positions that lie in memory.
std::string gathered(int64_t n) {
  return fmt::format(
      "axes a0={0}\nouter a0\nb0: read i32[{0}]\nb1: read f32[1000]\nb2: write f32[{0}]\nv0: i32 = b0[a0]\n"
      "v1: i32 = check v0 < 1000 site 0 [a0]\nv2: f32 = b1[v1]\nstage \n  b2[a0] = v2\n",
      n);
}

// Rows of 16 numbers moved down by one, `arrays` of them added: each load stands behind the same guard.
std::string shifted(int64_t rows, int arrays) {
  std::string text = fmt::format("axes a0={0} a1=16\nouter a0 a1\n", rows), loads, sums;
  for (int i = 0; i < arrays; ++i) {
    text += fmt::format("b{}: read f32[{}]\n", i, 16 * rows);
    loads += fmt::format("v{0}: f32 = b{0}[16*a0 + a1 + -16] if 0 <= a0 + -1 < {1}\n", i, rows - 1);
    if (i > 0) sums += fmt::format("v{}: f32 = add(v{}, v{})\n", arrays + i - 1, i, i == 1 ? 0 : arrays + i - 2);
  }
  const int result = arrays == 1 ? 0 : 2 * arrays - 2;
  return text + fmt::format("b{0}: write f32[{1}]\n{2}{3}stage \n  b{0}[16*a0 + a1] = v{4}\n", arrays, 16 * rows, loads, sums, result);
}

std::string drawn(int64_t n, const char* kind) {
  return fmt::format("axes a0={0}\nouter a0\nb0: write f32[{0}]\nv0: f32 = random {1} stream 0 keep 0x1p+0 [a0]\nstage \n  b0[a0] = v0\n",
                     n, kind);
}

Kernel product(int64_t rows, int64_t columns, int64_t depth) {
  Kernel kernel = kernel_of(fmt::format(
      "axes a0={0} a1={1} a2={2}\nouter a0 a1\nb0: read f32[{3}]\nb1: read f32[{4}]\nb2: write f32[{5}]\nv0: f32 = b0[{2}*a0 + a2]\n"
      "v1: f32 = b1[{1}*a2 + a1]\nv2: f32 = mul(v0, v1)\nv3: f32 = r0\nstage a2\n  r0: f32 = sum v2\nstage \n  b2[{1}*a0 + a1] = v3\n",
      rows, columns, depth, rows * depth, depth * columns, rows * columns));
  find_contraction(kernel);
  return kernel;
}

double slowdown(int64_t rows, int64_t columns, int64_t depth) {
  const KernelCycles c = cycles_of(product(rows, columns, depth), kWide);
  CHECK(c.in_tiles);
  return c.slowdown;
}

ProcessorPlan plan_of(const Kernel& kernel) { return plan_on_processor(kernel, kWide, std::vector<bool>(kernel.buffers.size(), false)); }

double of_one_core(const std::string& text) {
  const Kernel kernel = kernel_of(text);
  return cycles_of_one_core(kernel, plan_of(kernel), kWide);
}

bool alone(const std::string& text) { return plan_of(kernel_of(text)).alone; }

}  // namespace

// Not those of all its axes together, which of a long backward do not fit in 64 bits.
TEST_CASE("attention keeps a core busy with its products at their peak") {
  const Compilation c = compile_text("attention.ein", R"(
dim b = 8, h = 16, q = 65536, k = 65536, d = 128, c = 128
input query: f32[b h q d]
input keys: f32[b h k d]
input values: f32[b h k c]
s = einsum(query, keys, "b h q d, b h k d -> b h q k")
output y = einsum(softmax(s, k), values, "b h q k, b h k c -> b h q c")
)",
                                     {});
  REQUIRE(c.graph.has_value());
  const FormedGraph formed = form_graph(*c.graph, {}, RunMode::inference, Scheduling::all, processor_target(kWide, 1));
  const auto& list = formed.list.kernels;
  const auto attention = std::ranges::find_if(list, [](const GraphKernel& k) { return k.kernel->attention.has_value(); });
  REQUIRE(attention != list.end());
  const int64_t pairs = int64_t{8} * 16 * 65536 * 65536;
  CHECK(cycles_of_one_core(*attention->kernel, *attention->loops, kWide) == static_cast<double>(pairs) * 2 * (128 + 128) / 64);
}

TEST_CASE("one thread does what is too little for two, by what it takes a core") {
  CHECK(of_one_core(twice(8000)) == 8000 * 8 / 16);  // bytes from the second cache and to it take longer than the sums
  CHECK(alone(twice(8000)));
  CHECK(!alone(twice(8200)));
  const auto dear = [](int64_t n) {
    std::string text = twice(n);
    text.replace(text.find("add(v0, v0)"), 11, "sin(v0)");
    return text;
  };
  CHECK(of_one_core(dear(3200)) == cycles(dear(3200)));
  CHECK(alone(dear(1600)));
  CHECK(!alone(dear(3200)));
}

TEST_CASE("a small product is told by what multiplies it") {
  const Kernel narrow = product(64, 64, 64);
  const KernelCycles own = cycles_of(narrow, kWide);
  CHECK(cycles_of_one_core(narrow, plan_of(narrow), kWide) == own.slowdown * 64 * 64 * 64 * 2 / 64 + own.others);
  const auto alone_on = [](const char* dtype, int rows, Microkernel by = Microkernel::vectors) {
    const Compilation c = compile_text("product.ein",
                                       fmt::format("input x: {0}[n={1} m=64]\ninput y: {0}[m k=64]\n"
                                                   "output z = cast(einsum(x, y, \"n m, m k -> n k\"), {0})\n",
                                                   dtype, rows),
                                       {});
    REQUIRE(c.graph.has_value());
    Processor processor = kWide;
    processor.matrix_tiles = by == Microkernel::matrix_tiles, processor.bf16_pairs = by == Microkernel::bf16_pairs;
    const FormedGraph formed = form_graph(*c.graph, {}, RunMode::inference, Scheduling::all, processor_target(processor, 1));
    REQUIRE(formed.list.kernels.size() == 1);
    const ProcessorPlan& plan = *formed.list.kernels[0].loops;
    REQUIRE(plan.tiles);
    CHECK(plan.tiles->microkernel == by);
    return plan.alone;
  };
  CHECK(alone_on("f32", 16));
  CHECK(!alone_on("f64", 16));  // half as many at once
  CHECK(!alone_on("f32", 32));
  CHECK(alone_on("bf16", 32, Microkernel::bf16_pairs));
  CHECK(!alone_on("f32", 64));
  CHECK(alone_on("bf16", 64, Microkernel::matrix_tiles));
}

// Numbers by themselves, counters and entries into loops take as long as they did.
TEST_CASE("cycles: units of half a vector take twice as long for each") {
  Processor halves = kWide;
  halves.unit_bits = 256;
  CHECK(cycles(twice(1600), halves) == doctest::Approx(50 * (4 * (0.5 + 0.5 + 1) + 0.5) + 3));
  CHECK(peak_flops_per_cycle(kWide) == 64);
  CHECK(peak_flops_per_cycle(halves) == 32);
}

TEST_CASE("cycles: vectors that a loop fills") {
  // A turn of the loop takes 32 numbers: each of its registers a load, an addition and a store, and the iteration once.
  const auto turn = [](int registers) { return registers * (0.5 + 0.5 + 1) + 0.5; };
  CHECK(cycles(twice(1600)) == doctest::Approx(50 * turn(2) + 3));
  CHECK(cycles(twice(1601)) == doctest::Approx(51 * turn(2) + 3));  // one element more takes a turn of its own
  CHECK(cycles(twice(1632)) == doctest::Approx(51 * turn(2) + 3));
  CHECK(cycles(twice(1600, "f64")) == doctest::Approx(50 * turn(4) + 3));
  CHECK(cycles(twice(1600), kNarrow) == doctest::Approx(100 * turn(2) + 3));  // of 16 numbers
}

TEST_CASE("cycles: elements that lie apart are read one by one") {
  const double near = cycles(twice(1600)), apart = cycles(gathered(1600));
  CHECK(apart > 1600 * 0.8);
  CHECK(apart < 1600 * 2);
  CHECK(apart > 4 * near);
  CHECK(cycles(gathered(3200)) == doctest::Approx(2 * apart).epsilon(0.01));
}

TEST_CASE("cycles: a guard that several loads stand behind is compared once") {
  // A row of 16 is one turn: loads, additions, the store, the iteration and the loop's start, and a quarter for the guard.
  const auto row = [](int arrays) { return arrays * 0.5 + (arrays - 1) * 0.5 + 1 + 0.5 + 0.25; };
  for (const int arrays : {1, 2, 3}) CHECK(cycles(shifted(100, arrays)) == doctest::Approx(100 * row(arrays) + 3).epsilon(0.02));
}

TEST_CASE("cycles: random numbers by what is made of them") {
  CHECK(cycles(drawn(1600, "normal")) > 2.5 * cycles(drawn(1600, "uniform")));
  CHECK(cycles(drawn(1600, "uniform")) > 100 * 28);
  CHECK(cycles(drawn(1600, "uniform")) < 100 * (28 + 2));
}

TEST_CASE("cycles: additions of one sum wait for one another") {
  // All but the first eight wait four cycles each.
  CHECK(cycles(column_sums(4096)) >= (4096 - 8) * 4);
  CHECK(cycles(column_sums(4096)) < 4096 * 4 * 1.01);
  // Rows, whose vectors add to several sums: what loads and additions take, and 8 to add up the lanes.
  CHECK(cycles(row_sums(10, 4096)) >= 10 * 256 * (0.5 + 0.5));
  CHECK(cycles(row_sums(10, 4096)) < 10 * 256 * (0.5 + 0.5) * 1.25);
}

TEST_CASE("cycles: products at the edges of tiles") {
  CHECK(slowdown(512, 512, 512) < 1.1);
  CHECK(slowdown(512, 512 + 1, 512) > slowdown(512, 512, 512));
  CHECK(slowdown(512, 512, 8) > slowdown(512, 512, 512));  // tiles are begun as often, for fewer products
}
