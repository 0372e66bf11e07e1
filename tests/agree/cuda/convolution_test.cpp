// SPDX-License-Identifier: Apache-2.0
// Products that no library does (sums over windows, with more made of the result) on the emulated GPU's tensor cores: values and gradients
// as the interpreter gives them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/codegen/cuda/kernel_text.h"
#include "tests/support/kernel_programs.h"

using namespace einc;

namespace {

struct Sizes {
  int64_t batch, height, width, channels, filters, window, stride, padding;
};
// Channels that lie in whole packs and such as do not; tiles that the image, the filters and the depth fill and do not; windows that leave
// no place out and such as do; more filters than a tile has columns.
const Sizes kSizes[] = {{2, 9, 7, 8, 16, 3, 1, 1}, {1, 12, 11, 3, 8, 3, 1, 1}, {2, 10, 10, 16, 24, 3, 2, 1}, {3, 8, 8, 16, 40, 2, 2, 0},
                        {1, 7, 9, 24, 9, 5, 1, 2}, {1, 5, 6, 8, 136, 3, 1, 1}, {2, 16, 17, 32, 64, 3, 1, 0}};

std::string convolution(const Sizes& s, const char* precision) {
  return fmt::format(R"(import nn
dim batch = {}, rows = {}, cols = {}, c = {}
input x: f32[batch rows cols c]
param before: [c] ~ normal(std = 0.5)
output h = relu(conv(x * before, {}, kernel = {}, stride = {}, padding = {}) as conv)
loss = mean(h^2)
precision {}
minimize loss using sgd(lr = 0.1)
)",
                     s.batch, s.height, s.width, s.channels, s.filters, s.window, s.stride, s.padding, precision);
}

// Operands made where they are read, of few digits, so that sums are exact; a batch, and two results of a sum.
std::string product(int64_t rows, int64_t columns, int64_t depth, const char* precision) {
  return fmt::format(R"(dim batch = 2, rows = {}, columns = {}, depth = {}
input a: f32[batch rows depth]
input b: f32[batch depth columns]
input bias: f32[columns]
y = einsum(floor(4 * a) / 4, floor(4 * b) / 4, "batch rows depth, batch depth columns -> batch rows columns")
output p = relu(y + bias)
output q = y * y
precision {}
)",
                     rows, columns, depth, precision);
}

struct Precision {
  const char* name;
  double tolerance;
};
const Precision kPrecisions[] = {{"bf16", 0.03}, {"f16", 0.004}, {"tf32", 0.004}};

int64_t products_on_tensor_cores(const Graph& graph, const CudaOptions& options = {}) {
  const auto program = compile_for_cuda(graph, {}, options);
  return std::ranges::count_if(program->list.kernels,
                               [&](const GraphKernel& k) { return k.plan->kind == "tiles of a product on tensor cores"; });
}

// With so many products on tensor cores.
void check(const std::string& text, double tolerance, int64_t products) {
  CAPTURE(text);
  const Graph graph = finished(compile_text(text));
  CHECK(products_on_tensor_cores(graph) == products);
  const TensorMap inputs = inputs_of(graph, {}), params = initial_params(graph, {}, 1), states = initial_states(graph, {}, 1);
  const InterpretResult wanted = interpret(graph, {}, inputs, params, states, {});
  const CpuRun run = run_cuda(graph, {}, inputs, params, states, {});
  for (size_t o = 0; o < run.outputs.size(); ++o) CHECK(difference(run.outputs[o].second, wanted.outputs[o].second, tolerance) == "");
  for (const auto& [name, value] : run.gradients) {
    CAPTURE(name.str());
    CHECK(difference(value, wanted.gradients.at(name), tolerance) == "");
  }
}

}  // namespace

TEST_CASE("cuda: convolutions on tensor cores") {
  for (const Sizes& sizes : kSizes) {
    // The result, the filters' gradient and the images': of every second place of two axes, that is four products.
    const int products = sizes.stride == 2 && sizes.window > 2 ? 6 : 3;
    for (const auto& [precision, tolerance] : kPrecisions) check(convolution(sizes, precision), tolerance, products);
  }
}

TEST_CASE("cuda: a convolution's gradient by its images is one of the result's, not patches that are added") {
  const auto has_folds = [](int64_t stride, const char* precision) {
    const Graph graph = finished(compile_text(convolution({1, 8, 8, 8, 8, 3, stride, 1}, precision)));
    const auto program = compile_for_cuda(graph, {}, {});
    return std::ranges::any_of(program->list.kernels, [&](const GraphKernel& k) {
      return std::ranges::any_of(k.group.members, [&](NodeId id) { return program->bound[id].op == Op::fold; });
    });
  };
  CHECK(!has_folds(1, "bf16"));
  CHECK(!has_folds(1, "tf32"));
  CHECK(has_folds(1, "f32"));
  CHECK(!has_folds(2, "bf16"));
}

TEST_CASE("cuda: images are padded where they are read") {
  const auto pads = [](const std::string& text) {
    const Graph graph = finished(compile_text(text));
    const auto program = compile_for_cuda(graph, {}, {});
    return std::ranges::count_if(program->list.kernels, [&](const GraphKernel& k) {
      return std::ranges::any_of(k.group.stored, [&](NodeId id) {
        const NodeId cast_of = program->bound[id].op == Op::cast ? program->bound[id].operands[0] : id;
        return program->bound[cast_of].op == Op::pad;
      });
    });
  };
  for (const char* precision : {"bf16", "tf32"}) CHECK(pads(convolution({1, 8, 8, 8, 8, 3, 1, 1}, precision)) == 0);
  CHECK(pads(convolution({1, 8, 8, 3, 8, 3, 1, 1}, "bf16")) == 1);  // no 16 bytes lie beside each other
  CHECK(pads(convolution({1, 8, 8, 8, 8, 3, 1, 1}, "f32")) > 0);    // not on tensor cores
  const auto padded_by = [](const char* value, const char* output) {
    return fmt::format(
        "dim b = 2, n = 9, c = 16, o = 24\ninput x: f32[b h=n w=n c]\ninput f: f32[ky=3 kx=3 c o]\n"
        "image = pad(tanh(x), h = (1, 1), w = (2, 0), value = {})\n"
        "output y = einsum(image, f, \"b (i + ky) (j + kx) c, ky kx c o -> b i j o\")\n{}precision bf16\n",
        value, output);
  };
  const std::string zeros = padded_by("0", ""), ones = padded_by("1", ""), read_twice = padded_by("0", "output z = image * 2\n");
  CHECK(pads(zeros) == 0);
  CHECK(pads(ones) == 1);
  for (const std::string& text : {zeros, ones, read_twice}) {
    CAPTURE(text);
    CHECK(cuda_disagreement(text, 3) == "");
  }
}

// Few filters and many places: the gradient by the filters is a few tiles of sums over all places.
TEST_CASE("cuda: a convolution adds its bias and takes its maximum with 0 itself") {
  for (const char* precision : {"bf16", "f32"}) {
    const std::string text =
        "dim b = 8, n = 34, c = 16, o = 32\ninput x: f32[b h=n w=n c]\ninput f: f32[ky=3 kx=3 c o]\ninput bias: f32[o]\n"
        "output y = relu(einsum(x, f, \"b (i + ky) (j + kx) c, ky kx c o -> b i j o\") + bias)\nprecision " +
        std::string(precision) + "\n";
    CAPTURE(text);
    const Graph graph = finished(compile_text(text), Roots::inference);
    CudaOptions options;
    options.mode = RunMode::inference;
    const auto program = compile_for_cuda(graph, {}, options);
    CHECK(program->list.kernels.back().kernel->contraction);
    CHECK(cuda_disagreement(text, 3) == "");
  }
}

// Whichever of the operands comes first, and whatever the order of the depth's axes: packs lie along the channels.
TEST_CASE("cuda: channels that are not the innermost of the loops") {
  for (const char* einsum :
       {R"(x, f, "b (i + ky) (j + kx) c, c ky kx o -> b i j o")", R"(f, x, "c ky kx o, b (i + ky) (j + kx) c -> b i j o")",
        R"(f, x, "c ky kx o, b (i + ky) (j + kx) c -> o b j i")"}) {
    const std::string text = fmt::format(
        "dim b = 2, n = 9, c = 16, o = 24\ninput x: f32[b h=n w=n c]\ninput f: f32[c ky=3 kx=3 o]\noutput y = einsum({})\nprecision bf16\n",
        einsum);
    CAPTURE(text);
    CHECK(products_on_tensor_cores(finished(compile_text(text))) == 1);
    CHECK(cuda_disagreement(text, 3) == "");
  }
}

TEST_CASE("cuda: a deep product is divided into parts of its depth") {
  const std::string text = convolution({8, 32, 32, 8, 8, 3, 1, 1}, "bf16");
  const Graph graph = finished(compile_text(text));
  const auto program = compile_for_cuda(graph, {}, {});
  CHECK(std::ranges::any_of(program->list.kernels, [](const GraphKernel& k) { return k.kernel->contraction && !k.parts.empty(); }));
  check(text, 0.03, 3);
}

TEST_CASE("cuda: products on tensor cores of which more is made") {
  for (const Precision& precision : kPrecisions)
    for (const auto& [rows, columns, depth] : {std::array{64, 48, 40}, {33, 17, 9}, {130, 136, 64}, {9, 260, 33}}) {
      const std::string text = product(rows, columns, depth, precision.name);
      CAPTURE(text);
      CHECK(products_on_tensor_cores(finished(compile_text(text))) == 1);
      CHECK(cuda_disagreement(text, 3) == "");
    }
}

TEST_CASE("cuda: what is to be exact in f32 is not on tensor cores") {
  CHECK(products_on_tensor_cores(finished(compile_text(product(64, 48, 40, "f32")))) == 0);
}
