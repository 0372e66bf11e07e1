// SPDX-License-Identifier: Apache-2.0
// Contractions against the interpreter: layouts, odd sizes, batches, epilogues, blocks of depth; the same bits on any number
// of threads.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/lower/gelu_slope.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "runtime/cpu/cpu_features.h"
#include "tests/support/run_cpu.h"
#include "tests/support/sample.h"

using namespace einc;

namespace {

struct Case {
  std::string program;
  Bindings dims;
};

Graph inherited(const Graph& graph) { return assign_precision(simplify(expand(graph, Roots::training), Roots::training), Policy::inherit); }

double unit_of(DType dtype) {
  return dtype == DType::f64 ? 0x1p-53 : dtype == DType::f32 ? 0x1p-24 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
}

// Inputs lie between -1 and 1, so a sum of k products is off by at most k roundings of sums up to k; epilogues of the cases
// do not grow that. Stored small floats add half a unit of the result.
std::string difference(const Tensor& found, const Tensor& wanted, int64_t depth) {
  if (found.shape != wanted.shape) return "shapes differ";
  const double sum_unit = found.dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  for (int64_t i = 0; i < wanted.count(); ++i) {
    const double f = found.real_at(i), w = wanted.real_at(i);
    const double bound = 4 * sum_unit * static_cast<double>(depth) * std::sqrt(static_cast<double>(depth)) +
                         8 * unit_of(found.dtype) * std::max(1.0, std::fabs(w));
    if (!(std::fabs(f - w) <= bound)) return fmt::format("{} is {}, not {}", describe_position(wanted.shape, i), f, w);
  }
  return "";
}

std::vector<Tensor> run_on(int threads, const CpuProgram& program, const TensorMap& inputs) {
  Executor executor(program.program(), program.functions(), threads);
  for (const auto& [name, value] : inputs) {
    const int found = executor.find(BufferRole::input, name.str());
    if (found < 0) continue;  // the program does not read it
    const auto buffer = static_cast<uint32_t>(found);
    executor.set(buffer, to_host(convert(value, program.program().buffers[buffer].dtype)));
  }
  executor.run(0, 0);
  std::vector<Tensor> outputs;
  for (const ExecutableOutput& o : program.program().outputs) outputs.push_back(from_host(executor.get(o.buffer)));
  return outputs;
}

enum class ExpectedPlan {
  two_panels,
  two_panels_by_rows,
  rows_packed,
  few_depths,
  in_groups,
  left_out,
  kept,
  tiles,
  bf16_pairs,
  matrix_tiles,
  anything
};

void check(const Case& test, ExpectedPlan expect = ExpectedPlan::anything) {
  CAPTURE(test.program);
  std::string sizes;
  for (const auto& [name, value] : test.dims) sizes += fmt::format("{}={} ", name.str(), value);
  CAPTURE(sizes);
  const Graph graph = inherited(compile_text(test.program, test.dims));
  TensorMap inputs = some_inputs(graph, test.dims);
  for (auto& [name, value] : inputs) value = from_host(to_host(value));  // rounded to their dtype
  const InterpretResult wanted = interpret(graph, test.dims, inputs, {}, {});
  CpuOptions options;
  options.cache.clear();
  if (expect == ExpectedPlan::two_panels_by_rows || expect == ExpectedPlan::rows_packed)
    options.processor = native_processor(), options.processor->level2_bytes = 64 << 10;
  if (expect == ExpectedPlan::bf16_pairs) {
    options.processor = native_processor();
    options.processor->matrix_tiles = false, options.processor->bf16_pairs = has_cpu_feature("avx512bf16");
  }
  if (expect == ExpectedPlan::left_out)  // bf16 is multiplied in f32, too
    options.processor = native_processor(), options.processor->matrix_tiles = options.processor->bf16_pairs = false;
  const CpuProgram program(graph, test.dims, options);
  if (expect != ExpectedPlan::anything) {
    const auto& functions = program.lowered().lowered.functions;
    CHECK(std::any_of(functions.begin(), functions.end(), [&](const PlannedKernel& f) {
      if (!f.tiles || expect == ExpectedPlan::tiles) return f.tiles.has_value();
      if (expect == ExpectedPlan::bf16_pairs)
        return f.tiles->microkernel == (options.processor->bf16_pairs ? Microkernel::bf16_pairs : Microkernel::vectors);
      if (expect == ExpectedPlan::matrix_tiles)
        return (f.tiles->microkernel == Microkernel::matrix_tiles) == native_processor().matrix_tiles;
      if (expect == ExpectedPlan::rows_packed) return f.tiles->left == PanelSource::by_width;
      if (expect == ExpectedPlan::in_groups) return f.tiles->left_groups.has_value() && f.tiles->left == PanelSource::in_place;
      if (expect == ExpectedPlan::left_out) return f.tiles->left_out().has_value();
      if (expect == ExpectedPlan::kept) return !f.tiles->left_out();
      if (expect == ExpectedPlan::few_depths) return f.tiles->block_depth <= 32 && f.tiles->block_depth < f.tiles->depths();
      return f.tiles->right_panels == 2 &&
             (expect == ExpectedPlan::two_panels || f.tiles->shared == SharedAxis::rows || f.tiles->lanes < 16);
    }));
  }
  const std::vector<Tensor> one = run_on(1, program, inputs);
  for (size_t o = 0; o < one.size(); ++o) CHECK(difference(one[o], wanted.outputs[o].second, test.dims.at(Name("k"))) == "");
  for (int threads : {1, 2, 8}) {
    const std::vector<Tensor> again = run_on(threads, program, inputs);
    for (size_t o = 0; o < one.size(); ++o) CHECK(again[o].reals == one[o].reals);
  }
  for (const Guard guard : {Guard::after, Guard::before}) {
    GuardedMachine machine(program.program(), program.functions(), guard);
    const CpuRun guarded = run_on(machine, program.program(), inputs, {}, {}, {});
    for (size_t o = 0; o < one.size(); ++o) CHECK(guarded.outputs[o].second.reals == one[o].reals);
  }
}

struct ProductLayout {
  const char* name;
  const char *left, *right, *out;
};

constexpr ProductLayout kProductLayouts[] = {
    {"AB", "m k", "k n", "m n"},    {"A'B", "k m", "k n", "m n"},    {"AB'", "m k", "n k", "m n"},    {"A'B'", "k m", "n k", "m n"},
    {"(AB)'", "m k", "k n", "n m"}, {"(A'B)'", "k m", "k n", "n m"}, {"(AB')'", "m k", "n k", "n m"},
};

std::string product(const ProductLayout& l, const std::string& dtype, const std::string& epilogue = "") {
  return fmt::format(
      "dim m, n, k\ninput a: {3}[{0}]\ninput b: {3}[{1}]\ninput c: {3}[n]\ninput d: {3}[m n]\nx = einsum(a, b, \"{0}, {1} -> "
      "{2}\")\noutput y = {4}\n",
      l.left, l.right, l.out, dtype, epilogue.empty() ? "x" : epilogue);
}

}  // namespace

TEST_CASE("contractions: layouts and odd sizes") {
  constexpr int64_t kSizes[][3] = {{1, 1, 1},   {2, 3, 17},  {17, 63, 65},  {65, 65, 3},
                                   {1, 65, 63}, {65, 1, 63}, {63, 100, 17}, {130, 5, 129}};
  for (const ProductLayout& layout : kProductLayouts)
    for (const auto& [m, n, k] : kSizes) check({product(layout, "f32"), {{"m", m}, {"n", n}, {"k", k}}});
  for (const ProductLayout& layout : kProductLayouts)
    check({product(layout, "f64"), {{"m", 17}, {"n", 63}, {"k", 65}}}, ExpectedPlan::tiles);
}

TEST_CASE("contractions: blocks of depth, rows and columns") {
  for (const ProductLayout& layout : {kProductLayouts[0], kProductLayouts[1], kProductLayouts[2]}) {
    check({product(layout, "f32", "x + c"), {{"m", 33}, {"n", 50}, {"k", 1030}}}, ExpectedPlan::tiles);
    check({product(layout, "f32"), {{"m", 1100}, {"n", 33}, {"k", 515}}}, ExpectedPlan::tiles);
    check({product(layout, "f32"), {{"m", 18}, {"n", 520}, {"k", 517}}}, ExpectedPlan::tiles);
  }
}

// Several blocks of rows and of depth, a last panel of few columns, fewer rows than copy a whole panel.
TEST_CASE("contractions: a panel is filled while another is read") {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{65, 1024, 1030}, {700, 1024, 100}, {40, 2048, 515}})
    check({product(kProductLayouts[0], "f32", "x + c"), {{"m", m}, {"n", n}, {"k", k}}}, ExpectedPlan::two_panels);
  for (const int64_t m : {197, 200, 310})
    check({product(kProductLayouts[0], "f32", "x + c"), {{"m", m}, {"n", 144}, {"k", 100}}}, ExpectedPlan::two_panels_by_rows);
  check({product(kProductLayouts[0], "f64"), {{"m", 60}, {"n", 512}, {"k", 130}}}, ExpectedPlan::two_panels);
}

// A large right operand of long rows: a few depths at a time, for one tile of rows as for a few.
TEST_CASE("contractions: few rows") {
  const int64_t several_tiles = native_processor().vector_bits >= 512 ? 19 : 17;  // of rows, few enough on either
  for (const int64_t m : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{5}, int64_t{8}, several_tiles})
    check({product(kProductLayouts[0], "f32", "x + c"), {{"m", m}, {"n", 8201}, {"k", 70}}}, ExpectedPlan::few_depths);
}

// Columns too few for whole vectors: the transpose is made.
TEST_CASE("contractions: few columns") {
  for (const int64_t n : {2, 3, 5, 7, 10})
    for (const ProductLayout& layout : {kProductLayouts[0], kProductLayouts[1], kProductLayouts[4]})
      for (const char* dtype : {"f32", "bf16"})
        check({product(layout, dtype, layout.out[0] == 'n' ? "x" : "x + c + d"), {{"m", 43}, {"n", n}, {"k", 70}}}, ExpectedPlan::tiles);
  check({product(kProductLayouts[0], "f64", "x + c + d"), {{"m", 43}, {"n", 3}, {"k", 70}}}, ExpectedPlan::tiles);
  for (const int64_t n : {2, 3, 7}) check({product(kProductLayouts[2], "f32", "x + c"), {{"m", 43}, {"n", n}, {"k", 70}}});
}

// Whole vectors of several tiles' rows, tiles that are left, and a last one of few rows, in one block and in several.
TEST_CASE("contractions: a left operand that is packed by its rows") {
  for (const int64_t m : {9, 32, 63, 200})
    for (const int64_t k : {5, 16, 100})
      check({product(kProductLayouts[1], "f16"), {{"m", m}, {"n", 64}, {"k", k}}}, ExpectedPlan::rows_packed);
}

// Where the processor multiplies tiles of bf16, or pairs of them: tails along each axis, sums in blocks of depth and in parts of them, and
// panels that are packed while others are multiplied.
void check_bf16(ExpectedPlan expect) {
  constexpr int64_t kSizes[][3] = {{17, 63, 65}, {64, 96, 64}, {33, 50, 1030}, {16, 16, 32}, {100, 31, 33}, {70, 300, 64}};
  for (const ProductLayout& layout : sampled(kProductLayouts, 2))
    for (const auto& [m, n, k] : kSizes) check({product(layout, "bf16"), {{"m", m}, {"n", n}, {"k", k}}}, expect);
  for (const ProductLayout& layout : {kProductLayouts[0], kProductLayouts[1], kProductLayouts[2]}) {
    check({product(layout, "bf16", "x / 64 + c"), {{"m", 40}, {"n", 70}, {"k", 4200}}}, expect);
    check({product(layout, "bf16"), {{"m", 70}, {"n", 100}, {"k", 800}}}, expect);
    check({product(layout, "bf16", "gelu_tanh(x / 8 + c) * d"), {{"m", 63}, {"n", 65}, {"k", 96}}}, expect);
  }
  check({"dim g, m, n, k\ninput a: bf16[g m k]\ninput b: bf16[k 3 g n]\nq = einsum(a, b, \"b s k, k t h d -> t b h s d\")\noutput y = "
         "q[t = 1]\n",
         {{"g", 2}, {"m", 32}, {"n", 20}, {"k", 48}}},
        expect);
  check({"dim m, n, k\ninput a: bf16[m k]\ninput b: bf16[n k]\noutput y = einsum(exp(a), exp(b), \"m k, n k -> m n\") / 64\n",
         {{"m", 40}, {"n", 40}, {"k", 40}}},
        expect);
  for (const ProductLayout& layout : {kProductLayouts[0], kProductLayouts[1], kProductLayouts[2]})
    for (const int64_t m : {4, 5, 8, 15}) check({product(layout, "bf16"), {{"m", m}, {"n", 200}, {"k", 70}}}, expect);
}

TEST_CASE("contractions: bf16") { check_bf16(ExpectedPlan::matrix_tiles); }

TEST_CASE("contractions: bf16 in pairs") { check_bf16(ExpectedPlan::bf16_pairs); }

TEST_CASE("contractions: epilogues") {
  for (const ProductLayout& layout : {kProductLayouts[0], kProductLayouts[2], kProductLayouts[4]})
    for (const char* epilogue : {"x + c", "gelu_tanh(x / 8 + c)", "tanh(x / 8 + c) + d * d", "cast(x, bf16)"})
      check({product(layout, "f32", epilogue), {{"m", 63}, {"n", 65}, {"k", 63}}}, ExpectedPlan::tiles);
  check({product(kProductLayouts[0], "f32", "where(iota(m) >= iota(n), x, d)"), {{"m", 33}, {"n", 34}, {"k", 20}}}, ExpectedPlan::tiles);
}

// Axes in groups: heads taken out of a row, rows of several axes, a result whose axes lie apart.
TEST_CASE("contractions: batches and several axes") {
  constexpr const char* kPrograms[] = {
      "dim g, m, n, k\ninput a: f32[g m k]\ninput b: f32[g n k]\noutput y = einsum(a, b, \"g m k, g n k -> g m n\")\n",
      "dim g, m, n, k\ninput a: f32[g m k]\ninput b: f32[g k n]\noutput y = einsum(a, b, \"g m k, g k n -> m g n\")\n",
      "dim g, m, n, k\ninput a: f32[g m k]\ninput b: f32[k g n]\noutput y = einsum(a, b, \"h m k, k g n -> g h m n\")\n",
      "dim g, m, n, k\ninput a: f32[m g k]\ninput b: f32[n g k]\noutput y = einsum(a, b, \"m g k, n g k -> n m\")\n",
      "dim g, m, n, k\ninput a: f32[g m k]\ninput b: f32[k 3 g n]\nq = einsum(a, b, \"b s k, k t h d -> t b h s d\")\noutput y = q[t = "
      "1]\n",
      "dim g, m, n, k\ninput a: f32[g m k]\ninput b: f32[g k n]\noutput y = einsum(a, b, \"g m k, g k n -> n m\")\n",
      "dim g, m, n, k\ninput a: f32[m k]\ninput b: f32[n k]\ninput c: f32[k]\noutput y = einsum(a * c, gelu(b), \"m k, n k -> m n\")\n",
  };
  for (const char* program : kPrograms)
    for (const auto& [g, m, n, k] : {std::array<int64_t, 4>{3, 17, 33, 20}, {2, 63, 64, 65}, {5, 7, 16, 32}})
      check({program, {{"g", g}, {"m", m}, {"n", n}, {"k", k}}});
}

// The gradient of a convolution's kernel: rows are places in a window, which vectors of rows may or may not keep apart.
TEST_CASE("contractions: rows of several axes along which the lanes run") {
  constexpr const char* kProgram =
      "dim g, m, n, k\ninput a: f32[g h=k+2 w=k+2 m]\ninput b: f32[g y=k x=k n]\n"
      "output y = einsum(a, b, \"g (y + ky) (x + kx) m, g y x n -> ky kx m n\", ky=3, kx=3)\n";
  for (const int64_t m : {16, 12, 3, 1})
    for (const int64_t n : {32, 17}) check({kProgram, {{"g", 2}, {"m", m}, {"n", n}, {"k", 13}}}, ExpectedPlan::tiles);
}

// The same of bf16: a thread's first row is where whole vectors of the innermost axis begin, or they would take elements of the window's
// next place.
void check_bf16_windows(ExpectedPlan expect) {
  constexpr const char* kProgram =
      "dim g, m, n, y, k\ninput a: bf16[g h=y+2 w=k+2 m]\ninput b: bf16[g y x=k n]\n"
      "output r = einsum(a, b, \"g (y + ky) (x + kx) m, g y x n -> ky kx m n\", ky=3, kx=3)\n";
  for (const int64_t m : {16, 48, 12})
    for (const int64_t n : {20, 33}) check({kProgram, {{"g", 2}, {"m", m}, {"n", n}, {"y", 4}, {"k", 7}}}, expect);
}

TEST_CASE("contractions: windows of bf16 in tiles") { check_bf16_windows(ExpectedPlan::matrix_tiles); }

TEST_CASE("contractions: windows of bf16 in pairs") { check_bf16_windows(ExpectedPlan::bf16_pairs); }

// Windows are read where they lie, by groups of depths: whole images, several blocks of depth, strides, results with epilogues.
TEST_CASE("contractions: windows in place") {
  constexpr const char* kForward =
      "dim k, o, size\ninput a: f32[g=2 h=size+2 w=size+3 c=16]\ninput b: f32[ky=3 kx=4 c o]\ninput r: f32[g y=size x=size o]\n"
      "output z = relu(einsum(a, b, \"g (y + ky) (x + kx) c, ky kx c o -> g y x o\") + r)\n";
  for (const int64_t size : {5, 7, 8, 28})
    for (const int64_t o : {16, 33, 64, 130}) check({kForward, {{"k", 192}, {"o", o}, {"size", size}}}, ExpectedPlan::in_groups);
  constexpr const char* kByTwo =
      "dim k, o\ninput a: f32[g=2 h=17 w=17 c=32]\ninput b: f32[ky=3 kx=3 c o]\n"
      "output z = einsum(a, b, \"g (2*y + ky) (2*x + kx) c, ky kx c o -> g y x o\")\n";
  check({kByTwo, {{"k", 288}, {"o", 48}}}, ExpectedPlan::in_groups);
  constexpr const char* kDeep =
      "dim k, o\ninput a: f32[g=2 h=14 w=14 c=200]\ninput b: f32[ky=3 kx=3 c o]\n"
      "output z = einsum(a, b, \"g (y + ky) (x + kx) c, ky kx c o -> g y x o\")\n";
  check({kDeep, {{"k", 1800}, {"o", 48}}}, ExpectedPlan::in_groups);
  constexpr const char* kOfWeights =
      "dim k, o\ninput a: f32[g=3 h=14 w=30 c=16]\ninput b: f32[g y=12 x=28 o]\n"
      "output z = einsum(a, b, \"g (y + ky) (x + kx) c, g y x o -> ky kx c o\", ky=3, kx=3)\n";
  for (const int64_t o : {16, 40, 64}) check({kOfWeights, {{"k", 1008}, {"o", o}}}, ExpectedPlan::in_groups);
  constexpr const char* kOfBytes =
      "dim k, o\ninput a: f64[g=2 h=9 w=9 c=16]\ninput b: f64[ky=3 kx=3 c o]\n"
      "output z = einsum(a, b, \"g (y + ky) (x + kx) c, ky kx c o -> g y x o\")\n";
  check({kOfBytes, {{"k", 144}, {"o", 40}}}, ExpectedPlan::in_groups);
}

// Windows that reach into zeros around an image: elements left out of a first, a last and a tile in between, and of one that is all of a
// line; lines of windows; blocks of depth that end within a line and an element of it; packed and where it lies; the data's gradient.
TEST_CASE("contractions: windows over the edge of an image") {
  constexpr const char* kForward =
      "dim k, c, o, size\ninput a: f32[g=2 h=size w=size c]\ninput b: f32[ky=3 kx=3 c o]\ninput r: f32[g y=size x=size o]\n"
      "output z = relu(einsum(pad(a, h = (1, 1), w = (1, 1)), b, \"g (y + ky) (x + kx) c, ky kx c o -> g y x o\") + r)\n";
  for (const auto& [size, c, o] : {std::array<int64_t, 3>{7, 16, 200}, {14, 16, 33}, {14, 20, 256}, {28, 8, 64}, {5, 4, 16}, {6, 260, 40}})
    check({kForward, {{"k", 9 * c}, {"c", c}, {"o", o}, {"size", size}}}, ExpectedPlan::left_out);
  check({kForward, {{"k", 9 * 512}, {"c", 512}, {"o", 256}, {"size", 7}}}, ExpectedPlan::left_out);
  constexpr const char* kData =
      "dim k, size\ninput a: f32[g=2 h=size w=size c=32]\ninput b: f32[ky=3 kx=3 c o=24]\ninput t: f32[g y=size x=size o]\n"
      "z = einsum(pad(a, h = (1, 1), w = (1, 1)), b, \"g (y + ky) (x + kx) c, ky kx c o -> g y x o\")\n"
      "output d = grad(sum(z * t), a)\noutput e = grad(sum(z * t), b)\n";
  for (const int64_t size : {7, 14, 12}) check({kData, {{"k", 4 * size * size + 216}, {"size", size}}}, ExpectedPlan::left_out);
  struct Other {
    const char *padding, *places;
    int64_t features;
    ExpectedPlan expect;
  };
  const Other others[] = {
      // by two places, more zeros on one side, elements two apart (packed, and where they lie), one axis alone; what is not all zeros
      {"h = (1, 1), w = (0, 2)", "(2*y + ky) (2*x + kx)", 40, ExpectedPlan::left_out},
      {"h = (3, 1), w = (2, 3)", "(y + ky) (x + kx)", 40, ExpectedPlan::left_out},
      {"h = (2, 2), w = (2, 2)", "(y + 2*ky) (x + 2*kx)", 200, ExpectedPlan::left_out},
      {"h = (2, 2), w = (2, 2)", "(y + 2*ky) (x + 2*kx)", 40, ExpectedPlan::kept},
      {"h = (1, 1)", "(y + ky) (x + kx)", 40, ExpectedPlan::left_out},
      {"w = (1, 1)", "(y + ky) (x + kx)", 40, ExpectedPlan::left_out},
      {"h = (1, 1), w = (1, 1), value = 0.5", "(y + ky) (x + kx)", 40, ExpectedPlan::kept},
      {"h = (1, 1), w = (1, 1), value = -0.0", "(y + ky) (x + kx)", 40, ExpectedPlan::kept},
      {"g = (1, 1)", "(y + ky) (x + kx)", 40, ExpectedPlan::kept},
  };
  for (const auto& [padding, places, features, expect] : others)
    for (const char* dtype : {"f32", "f64"})
      check({fmt::format("dim k\ninput a: {0}[g=3 h=11 w=13 c=8]\ninput b: {0}[ky=3 kx=3 c o={1}]\n"
                         "output z = einsum(pad(a, {2}), b, \"g {3} c, ky kx c o -> g y x o\")\n",
                         dtype, features, padding, places),
             {{"k", 72}}},
            expect);
  check({"dim k\ninput a: bf16[g=2 h=7 w=7 c=16]\ninput b: bf16[ky=3 kx=3 c o=48]\n"
         "output z = einsum(pad(a, h = (1, 1), w = (1, 1)), b, \"g (y + ky) (x + kx) c, ky kx c o -> g y x o\")\n",
         {{"k", 144}}},
        ExpectedPlan::left_out);
  constexpr const char* kLine =
      "dim k\ninput a: f32[g=3 t=21 c=12]\ninput b: f32[kt=5 c o=48]\n"
      "output z = einsum(pad(a, t = (4, 0)), b, \"g (s + kt) c, kt c o -> g s o\")\n";
  check({kLine, {{"k", 60}}}, ExpectedPlan::left_out);
}

// One function in the epilogue, however differentiation writes it; a change of that shows here.
TEST_CASE("contractions: the slope of gelu in an epilogue") {
  const std::string text =
      "dim m, n, k\ninput a: f32[m k]\ninput b: f32[k n]\ninput c: f32[n k]\nx = einsum(a, b, \"m k, k n -> m n\")\nloss = "
      "sum(einsum(gelu(x), c, \"m n, n k -> m k\"))\noutput y = grad(loss, x)\n";
  const Bindings dims = {{"m", 40}, {"n", 70}, {"k", 33}};
  const Graph graph = inherited(compile_text(text, dims));
  CpuOptions options;
  options.cache.clear();
  const CpuProgram program(graph, dims, options);
  const auto& functions = program.lowered().lowered.functions;
  CHECK(std::any_of(functions.begin(), functions.end(), [](const PlannedKernel& f) {
    return std::any_of(f.kernel->values.begin(), f.kernel->values.end(),
                       [&](const Scalar& v) { return argument_of_gelu_slope(*f.kernel, v).has_value(); });
  }));
  check({text, dims});
}
