// SPDX-License-Identifier: Apache-2.0
// Programs with attention in several layouts and under several masks.
#pragma once
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_graph.h"
#include "tests/support/tensor_difference.h"

namespace einc::attention_programs {

// Axes: b batch, g groups of heads that share keys, h heads of a group, q rows, k keys, d and c their widths.
struct Layout {
  const char *q, *k, *v, *scores, *out;
};

inline constexpr Layout kPlain{"b g h q d", "b g k d", "b g k c", "b g h q k", "b g h q c"};
inline constexpr Layout kLayouts[] = {
    kPlain,
    {"b q g h d", "b k g d", "b k g c", "b g h q k", "b q g h c"},
    {"g h q d b", "g d k b", "c k b g", "g k q b h", "c q b g h"},
    {"q d g h b", "k g b d", "g b k c", "q b k g h", "h g b q c"},
};

inline constexpr const char* kCausal = "where(iota(k) <= iota(q), s, -inf)";

inline std::string program(const Layout& l, const std::string& masked, const std::string& dtype = "f32") {
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

// What a step of a ring does: a maximum that is raised to a number of its row, results that are not divided by their sum.
inline std::string raised(const Layout& l, const std::string& masked) {
  std::string text = program(l, masked);
  const auto replace = [&](const std::string& from, const std::string& to) { text.replace(text.find(from), from.size(), to); };
  replace("input length", "input least: f32[b g h q]\ninput length");
  replace("output y = einsum(softmax(" + masked + ", k), ",
          fmt::format("z = {}\nm = stop_gradient(max(max(z, k), least))\ne = exp(z - m)\noutput sums = sum(e, k)\noutput largest = m\n"
                      "output y = einsum(e, ",
                      masked));
  return text;
}

// Masks under which some rows see no keys: the first, the last, and of two bounds those of a block that has the lower one above the other.
inline constexpr const char* kKeylessMasks[] = {
    "where(iota(k) + 20 <= iota(q), s, -inf)",
    "where(iota(k) >= iota(q) + 20, s, -inf)",
    "where((iota(k) + 40 <= iota(q)) and (iota(k) + iota(q) >= 60), s, -inf)",
};

// Attention of 16-bit inputs with its gradients; no backward kernel of ours would keep the result.
inline std::string step(const Layout& l, const std::string& masked, const std::string& dtype) {
  return fmt::format(R"(
dim b = 2, g = 2, h = 2, q, k, d, c
input query: {6}[{0}]
input keys: {6}[{1}]
input values: {6}[{2}]
input dy: {6}[{4}]
s = einsum(query, keys, "{0}, {1} -> {3}") * rsqrt(d)
y = einsum(softmax({5}, k), values, "{3}, {2} -> {4}")
output most = max(y)
total = sum(y * dy)
output dq: {6}[{0}] = cast(grad(total, query), {6})
output dk: {6}[{1}] = cast(grad(total, keys), {6})
output dv: {6}[{2}] = cast(grad(total, values), {6})
)",
                     l.q, l.k, l.v, l.scores, l.out, masked, dtype);
}

inline constexpr const char* kMasks[] = {
    "s",
    "where(iota(k) <= iota(q) and iota(q) - iota(k) < 9, s, -inf)",
    "where(iota(k) > iota(q), -inf, s)",
    "where(iota(k) < length, s, -inf)",
    "s + bias",
    "where(iota(k) <= iota(q), tanh(s / 4) * 4 + bias, -inf)",
    "where(iota(k) <= iota(q), s, -1e9)",
    "where(iota(k) + 3 >= iota(q), s, -inf)",
};

inline Graph finished(const Graph& graph, Roots roots = Roots::training) {
  return assign_precision(simplify(expand(graph, roots), roots), Policy::inherit);
}

// Inputs with lengths of at least 1 and at most all keys.
inline TensorMap inputs_of(const Graph& graph, const Bindings& dims) {
  TensorMap inputs = some_inputs(graph, dims);
  for (auto& [name, value] : inputs)
    if (name.str() == "length")
      for (size_t i = 0; i < value.ints.size(); ++i) value.ints[i] = std::max<int64_t>(1, dims.at(Name("k")) - 2 * static_cast<int64_t>(i));
  return inputs;
}

inline Bindings sizes(int64_t q, int64_t k, int64_t d, int64_t c) { return {{"q", q}, {"k", k}, {"d", d}, {"c", c}}; }

}  // namespace einc::attention_programs
