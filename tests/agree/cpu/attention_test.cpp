// Attention in tiles against the interpreter and against itself with scores stored: layouts, masks, groups of heads, odd sizes,
// gradients, small floats; the same bits on any number of threads.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_cpu.h"

using namespace einc;

namespace {

// Axes: b batch, g groups of heads that share keys, h heads of a group, q rows, k keys, d and c their widths.
struct Layout {
  const char *q, *k, *v, *scores, *out;
};

constexpr Layout kPlain{"b g h q d", "b g k d", "b g k c", "b g h q k", "b g h q c"};
constexpr Layout kLayouts[] = {
    kPlain,
    {"b q g h d", "b k g d", "b k g c", "b g h q k", "b q g h c"},
    {"g h q d b", "g d k b", "c k b g", "g k q b h", "c q b g h"},
    {"q d g h b", "k g b d", "g b k c", "q b k g h", "h g b q c"},
};

constexpr const char* kCausal = "where(iota(k) <= iota(q), s, -inf)";

std::string program(const Layout& l, const std::string& masked, const std::string& dtype = "f32") {
  return fmt::format(R"(
dim b = 2, g = 2, h = 2, q, k, d, c
param query: [{0}] ~ normal(std = 1)
param keys: [{1}] ~ normal(std = 1)
param values: [{2}] ~ normal(std = 1)
input target: f32[{4}]
input bias: f32[h q k]
input length: i32[b]
precision {6}
s = einsum(query, keys, "{0}, {1} -> {3}") * rsqrt(d)
output y = einsum(softmax({5}, k), values, "{3}, {2} -> {4}")
loss = mean((y - target)^2)
minimize loss using sgd(lr = 0.1)
)",
                     l.q, l.k, l.v, l.scores, l.out, masked, dtype);
}

double largest(const Tensor& t) {
  double most = 0;
  for (int64_t i = 0; i < t.count(); ++i) most = std::max(most, std::fabs(t.real_at(i)));
  return most;
}

// Within `tolerance` of the largest element.
std::string difference(const Tensor& found, const Tensor& wanted, double tolerance) {
  if (found.shape != wanted.shape) return "shapes differ";
  const double bound = tolerance * std::max(largest(wanted), 1e-6);
  for (int64_t i = 0; i < wanted.count(); ++i) {
    const double f = found.real_at(i), w = wanted.real_at(i);
    if (std::isnan(w) ? std::isnan(f) : std::fabs(f - w) <= bound) continue;
    return fmt::format("{} is {}, not {}", describe_position(wanted.shape, i), f, w);
  }
  return "";
}

Graph finished(const Graph& graph) { return assign_precision(simplify(expand(graph, Roots::training), Roots::training), Policy::inherit); }

int attentions(const LoweredGraph& lowered) {
  const auto& kernels = lowered.list.kernels;
  return static_cast<int>(
      std::count_if(kernels.begin(), kernels.end(), [](const GraphKernel& k) { return k.kernel->attention.has_value(); }));
}

enum class Expect { attention, anything };

void check(const std::string& text, const Bindings& dims, Expect expect, double tolerance = 2e-5) {
  CAPTURE(text);
  std::string sizes;
  for (const auto& [name, value] : dims) sizes += fmt::format("{}={} ", name.str(), value);
  CAPTURE(sizes);
  const Graph graph = finished(compile_text(text, dims));
  TensorMap inputs = some_inputs(graph, dims), params = initial_params(graph, dims, 1), states = initial_states(graph, dims, 1);
  for (auto& [name, value] : inputs)
    if (name.str() == "length")
      for (size_t i = 0; i < value.ints.size(); ++i) value.ints[i] = std::max<int64_t>(1, dims.at(Name("k")) - 2 * static_cast<int64_t>(i));
  const InterpretResult wanted = interpret(graph, dims, inputs, params, states);
  for (const Fusion fusion : {Fusion::on, Fusion::without_attention}) {
    CAPTURE(fusion == Fusion::on);
    CpuOptions options;
    options.fusion = fusion;
    options.cache.clear();
    const CpuProgram cpu(graph, dims, options);
    if (expect == Expect::attention) CHECK(attentions(cpu.lowered()) == (fusion == Fusion::on ? 2 : 0));
    const auto run = [&](int threads) { return run_program(cpu.program(), cpu.functions(), inputs, params, states, {}, threads); };
    const CpuRun one = run(1);
    for (size_t o = 0; o < one.outputs.size(); ++o) CHECK(difference(one.outputs[o].second, wanted.outputs[o].second, tolerance) == "");
    for (const auto& [name, value] : one.gradients) {
      CAPTURE(name.str());
      CHECK(difference(value, wanted.gradients.at(name), tolerance) == "");
    }
    for (int threads : {2, 8}) {
      const CpuRun again = run(threads);
      for (size_t o = 0; o < one.outputs.size(); ++o) CHECK(again.outputs[o].second.reals == one.outputs[o].second.reals);
      for (const auto& [name, value] : one.gradients) CHECK(again.gradients.at(name).reals == value.reals);
    }
  }
}

Bindings sizes(int64_t q, int64_t k, int64_t d, int64_t c) { return {{"q", q}, {"k", k}, {"d", d}, {"c", c}}; }

}  // namespace

TEST_CASE("attention: layouts and odd sizes") {
  for (const Layout& layout : kLayouts) check(program(layout, kCausal), sizes(33, 33, 17, 20), Expect::attention);
  for (int64_t n : {1, 2, 3, 17, 63, 65})
    check(program(kPlain, kCausal), sizes(n, n, 16, 16), n < 4 ? Expect::anything : Expect::attention);
  check(program(kPlain, "s"), sizes(40, 7, 3, 2), Expect::attention);
  check(program(kPlain, "s"), sizes(5, 100, 64, 65), Expect::attention);
  check(program(kPlain, kCausal), sizes(128, 128, 64, 64), Expect::attention);
}

TEST_CASE("attention: masks and what else is made of scores") {
  constexpr const char* kMasks[] = {
      "s",
      "where(iota(k) <= iota(q) and iota(q) - iota(k) < 9, s, -inf)",
      "where(iota(k) > iota(q), -inf, s)",
      "where(iota(k) < length, s, -inf)",
      "s + bias",
      "where(iota(k) <= iota(q), tanh(s / 4) * 4 + bias, -inf)",
      "where(iota(k) <= iota(q), s, -1e9)",
      "where(iota(k) + 3 >= iota(q), s, -inf)",
  };
  for (const char* mask : kMasks) check(program(kLayouts[1], mask), sizes(50, 50, 16, 16), Expect::attention);
}

TEST_CASE("attention: small floats") {
  check(program(kLayouts[1], kCausal, "bf16"), sizes(33, 33, 16, 20), Expect::attention, 0.03);
  check(program(kPlain, kCausal, "f16"), sizes(33, 33, 16, 20), Expect::attention, 0.004);
}
