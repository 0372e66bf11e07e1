// SPDX-License-Identifier: Apache-2.0
#include "tests/support/backend_programs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/layer_cases.h"
#include "tests/support/packed_tensor.h"
#include "tests/support/sample.h"

namespace einc {
namespace {

using nlohmann::json;

std::string difference(const Tensor& found, const Tensor& wanted, double tolerance) {
  if (found.shape != wanted.shape) return "shapes differ";
  for (int64_t i = 0; i < wanted.count(); ++i) {
    const double f = found.real_at(i), w = wanted.real_at(i);
    if (std::isnan(w) ? std::isnan(f) : f == w) continue;
    if (!(std::fabs(f - w) <= tolerance * std::max(1.0, std::fabs(w))))
      return fmt::format("{} is {}, not {}", describe_position(wanted.shape, i), f, w);
  }
  return "";
}

double tolerance_of(DType dtype) {
  if (!is_floating(dtype)) return 0;
  return dtype == DType::f64 ? 1e-11 : dtype == DType::f32 ? 2e-5 : info(dtype).epsilon;
}

Graph trained(const Graph& graph) { return assign_precision(simplify(expand(graph, Roots::training), Roots::training), Policy::f32); }

void compare(const std::string& what, const Graph& elaborated, const Bindings& dims, const Backend& backend,
             std::span<const Scheduling> ways) {
  const Graph graph = trained(elaborated);
  const TensorMap inputs = some_inputs(graph, dims), params = initial_params(graph, dims, 1), states = initial_states(graph, dims, 1);
  const InterpretResult wanted = interpret(graph, dims, inputs, params, states);
  for (const Scheduling& scheduling : ways) {
    CAPTURE(what);
    CAPTURE(!scheduling.leaves_out("fusion"));
    CAPTURE(scheduling.recompute.bytes);
    const CpuRun found = backend(graph, dims, inputs, params, states, scheduling);
    const auto check = [&](const std::string& name, const Tensor& f, const Tensor& w) {
      CAPTURE(name);
      CHECK(difference(f, w, tolerance_of(f.dtype)) == "");
    };
    REQUIRE(found.outputs.size() == wanted.outputs.size());
    for (size_t i = 0; i < wanted.outputs.size(); ++i)
      check(wanted.outputs[i].first.str(), found.outputs[i].second, wanted.outputs[i].second);
    if (wanted.loss && found.loss) check("loss", *found.loss, *wanted.loss);
    for (const auto& [name, value] : found.gradients) check("gradient " + name.str(), value, wanted.gradients.at(name));
    for (const auto& [name, value] : wanted.params) check("param " + name.str(), found.params.at(name), value);
    for (const auto& [name, value] : wanted.states) check("state " + name.str(), found.states.at(name), value);
  }
}

}  // namespace

void check_torch_programs(const Backend& backend, std::span<const Scheduling> ways, size_t every) {
  std::ifstream in("tests/numeric/ops/cases.json");
  const json cases = json::parse(in);
  for (const json& test : sampled(cases, every)) {
    const std::string name = test["name"].get<std::string>();
    CAPTURE(name);
    const Graph graph = trained(compile_text(test["program"].get<std::string>()));
    TensorMap inputs;
    for (const auto& [input, packed] : test["inputs"].items()) inputs.emplace(Name(input), tensor_of(packed));
    for (const Scheduling& scheduling : ways) {
      CAPTURE(!scheduling.leaves_out("fusion"));
      const CpuRun run = backend(graph, {}, inputs, {}, {}, scheduling);
      for (const auto& [output, tensor] : run.outputs) {
        CAPTURE(output.str());
        const Tensor wanted = tensor_of(test["outputs"][output.str()]);
        CHECK(difference(tensor, wanted, std::max(test["tolerance"].get<double>(), tolerance_of(tensor.dtype))) == "");
      }
    }
  }
}

void check_layers(const Backend& backend, std::span<const Scheduling> ways, size_t every) {
  for (LayerCase& test : sampled(layer_cases(), every)) {
    if (test.mode != RunMode::training) continue;
    CAPTURE(test.name);
    const Graph graph = trained(compile_text(test.program));
    test.tolerance = std::max(test.tolerance, 2e-5);  // params are f32
    for (const Scheduling& scheduling : ways) {
      CAPTURE(!scheduling.leaves_out("fusion"));
      const CpuRun run = backend(graph, {}, test.inputs, test.params_of(graph), test.states_of(graph), scheduling);
      for (const auto& [name, tensor] : run.outputs) CHECK_MESSAGE(test.difference(test.outputs, name, tensor) == "", name.str());
      for (const auto& [name, tensor] : run.gradients)
        if (test.gradients.contains(name)) CHECK_MESSAGE(test.difference(test.gradients, name, tensor) == "", name.str());
      for (const auto& wanted : test.after)
        CHECK_MESSAGE(test.difference(test.after, wanted.first, run.states.at(wanted.first)) == "", wanted.first.str());
    }
  }
}

void check_examples(const Backend& backend, std::span<const Scheduling> ways, size_t every) {
  for (const auto& [name, dims] : sampled(small_examples(), every)) compare(name, compile_example(name, dims), dims, backend, ways);
}

void check_draws(const Backend& backend, std::span<const Scheduling> ways) {
  compare("draws", compile_text(R"(
input x: [rows=37 cols=5]
output u = uniform(rows, cols)
output z = normal(rows, cols)
output y = dropout(x, 0.25)
output h = sum(normal(rows, cols, wide = 3), rows, cols)
output b = bernoulli(sigmoid(x))
output i = randint(-2147483648, 2147483647, rows)
output j = randint(-3, 4, rows, cols)
output c = categorical(x, cols)
output p = permutation(k = 100)
)"),
          {}, backend, ways);
}

void check_scatters(const Backend& backend, std::span<const Scheduling> ways) {
  const char* program = R"(
dim rows = 2100, n = 150, width = 5
param table: [rows width] ~ normal(std = 1)
input at: i32[n]
input wanted: f32[n width]
output y = table[rows = at]
loss = sum((table[rows = at] - wanted)^2)
minimize loss using sgd(lr = 0.1)
)";
  compare("scatter", compile_text(program), {}, backend, ways);
  const char* segments = R"(
dim edges = 900, nodes = 40, width = 5
input v: f32[edges width]
input at: i32[edges]
output total = segment_sum(v, at % nodes, nodes)
output mean = segment_mean(v, at % nodes, nodes)
output most = segment_max(v, at % nodes, nodes)
output least = segment_min(at, at % nodes, nodes)
output count = segment_sum(1, at % nodes, nodes)
output slope = grad(sum(segment_max(v, at % nodes, nodes)^2), v)
)";
  compare("segments", compile_text(segments), {}, backend, ways);
  // Rows that a sum by index gathers itself: alone, beside another reader of them, and of what the sum is added to.
  const char* messages = R"(
dim edges = 900, nodes = 40, width = 5
param h: [nodes width] ~ normal(std = 1)
param other: [nodes width] ~ normal(std = 1)
input sender: i32[edges]
input receiver: i32[edges]
from = sender % nodes
to = receiver % nodes
heard = h + segment_mean(h[nodes = from], to, nodes)
shown = other[nodes = from]
output both = shown
output all = segment_mean(shown, to, nodes)
output most = segment_max(other[nodes = to], from, nodes)
loss = mean(heard^2) + mean(segment_mean(heard[nodes = to], from, nodes)^2)
minimize loss using sgd(lr = 0.1)
)";
  compare("messages", compile_text(messages), {}, backend, ways);
}

// Lines so long that they are merged, with ties and NaNs; of sizes that no power of 2 is near.
void check_orders(const Backend& backend, std::span<const Scheduling> ways) {
  const char* program = R"(
dim n = 700, r = 2
input v: f32[n]
input i: i32[n r]
x = round(v * 4)
y = where(i % 50 == 0, nan, x)
output up = sort(y, n)
output down = argsort(y, n, descending = true)
output whole = sort(i, n, descending = true)
output most = top_k_index(x, n, 650)
output slope = grad(sum(sort(v, n) * iota(n)), v)
)";
  compare("orders", compile_text(program), {}, backend, ways);
}

void check_products(const Backend& backend, std::span<const Scheduling> ways) {
  const char* program = R"(
dim b = 3, s = 9, h = 2, d = 8, e = 10, three = 3
param first: [e three h d] ~ normal(std = 0.5)
param second: [h d e] ~ normal(std = 0.5)
input x: f32[b s e]
y = einsum(x, first, "b s e, e three h d -> three b h s d")
z = y * y
m = einsum(z, second, "three b h s d, h d e -> b s three e")
output n = einsum(m, m, "b s three e, b u three e -> b s u")
loss = sum(n^2) * 0.01
minimize loss using sgd(lr = 0.001)
)";
  compare("products", compile_text(program), {}, backend, ways);
  const Bindings dims{{"batch", 2}, {"seq", 9}, {"vocab", 11}, {"layers", 2}, {"heads", 2}, {"head", 8}};
  compare("gpt2 of longer axes", compile_example("gpt2.ein", dims), dims, backend, ways);
  // Rotary halves are one axis of the products and two of what makes them.
  const Bindings halves{{"batch", 2}, {"seq", 9}, {"vocab", 11}, {"layers", 1}, {"embed", 16}, {"heads", 4}, {"kv_heads", 2}, {"ffn", 10}};
  compare("llama of longer axes", compile_example("llama.ein", halves), halves, backend, ways);
}

void check_packs(const Backend& backend, std::span<const Scheduling> ways) {
  for (const int wide : {140000, 140004, 140001}) {
    const std::string program = fmt::format(R"(
dim rows = 3, wide = {}
input x: f32[rows wide]
input y: u16[rows wide]
input shift: f32[wide]
output z = x * 2 + shift
output half = y * 3 + x
output squares = sum(x * x, rows)
output largest = max(y, rows)
output both = sum(x, rows) * max(x, rows) + shift
output mixed = where(x > 0, y, 0) + shift
)",
                                            wide);
    compare(program, compile_text(program), {}, backend, ways);
  }
}

}  // namespace einc
