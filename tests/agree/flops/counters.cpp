// SPDX-License-Identifier: Apache-2.0
// The cost formulas against counters in the interpreter's innermost loops: by phase and class, exactly, at several dims.
// The two share no code but the graph.
#include <doctest/doctest.h>

#include "compiler/cost/totals.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

void check_counts(const std::string& what, const Graph& compiled, const Bindings& dims) {
  const Graph graph = simplify(compiled, Roots::training);
  const FlopTotals formulas = count_flops(graph, constant_nodes(graph));
  const InterpretResult run = run_graph(graph, dims);
  const Bindings values = graph.dims.bind(dims).values;
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer}) {
    const Counts counted = count_phase(graph, run, phase);
    const auto check = [&](const char* kind, const Poly& formula, uint64_t count) {
      const auto value = formula.evaluate_integer(values);
      CHECK_MESSAGE(value == static_cast<int64_t>(count), what, " ", to_string(phase), " ", kind, ": ", formula.str());
    };
    check("contraction", formulas.of(phase, FlopClass::contraction), counted.contraction);
    check("elementwise", formulas.of(phase, FlopClass::elementwise), counted.elementwise);
    check("transcendental", formulas.transcendental[static_cast<size_t>(phase)], counted.transcendental);
    check("reduction", formulas.of(phase, FlopClass::reduction), counted.reduction);
    check("other", formulas.of(phase, FlopClass::other), counted.other);
  }
}

}  // namespace

TEST_CASE("counts: formulas equal the interpreter's counters in whole models") {
  for (const auto& [name, dims] : small_examples()) {
    const Graph graph = compile_example(name, dims);
    CHECK(count_phase(graph, run_graph(graph, dims), Phase::forward).contraction > 0);
    check_counts(name, graph, dims);
  }
}

TEST_CASE("counts: formulas equal the interpreter's counters in the accounting cases' models") {
  const Bindings two_layer{{"B", 6}, {"D", 4}, {"K", 3}};
  const std::pair<const char*, Bindings> models[] = {
      {"a_minus_b", {}},
      {"bmm", {}},
      {"bsh", {}},
      {"chain_rule", {}},
      {"conv1d", {}},
      {"conv2d", {}},
      {"deep_linear", {}},
      {"elementwise", {}},
      {"embedding", {}},
      {"expand_bmm", {}},
      {"five_axes", {}},
      {"five_products", {}},
      {"outer", {}},
      {"row_sum", {}},
      {"shared_weight", {}},
      {"twice", {}},
      {"x_plus_x", {}},
      {"two_layer", two_layer},
      {"two_layer_dx", two_layer},
      {"two_layer_frozen", two_layer},
      {"one_layer", two_layer},
      {"sdpa", {{"b", 2}, {"h", 2}, {"t", 3}, {"d", 4}}},
  };
  for (const auto& [name, dims] : models)
    check_counts(name, compile_path(std::string("tests/numeric/accounting/models/") + name + ".ein", dims), dims);
}

// The counting rules' own words: logsumexp is max, sub, exp, sum, log, add; cross-entropy logsumexp minus a gather; log_softmax, of which
// they say nothing, logsumexp and a subtraction. Rows of n = 4 elements, b = 2 of them.
TEST_CASE("counts: logsumexp, cross-entropy and log_softmax cost what the rules say") {
  const std::string head = "dim b = 2, n = 4\ninput x: f32[b n]\ninput ids: i32[b]\n";
  const uint64_t b = 2, bn = 8;
  const std::tuple<const char*, uint64_t, uint64_t> rows[] = {{"logsumexp(x, n)", 2 * bn + 2 * b, bn + b},
                                                              {"cross_entropy(x, ids, n)", 2 * bn + 3 * b, bn + b},
                                                              {"log_softmax(x, n)", 3 * bn + 2 * b, bn + b}};
  for (const auto& [call, elementwise, transcendental] : rows) {
    CAPTURE(call);
    const Graph graph = simplify(compile_text(head + "output y = " + call), Roots::training);
    CHECK(count_phase(graph, run_graph(graph, {}), Phase::forward) == Counts{0, elementwise, transcendental, 2 * bn, 0});
  }
}

TEST_CASE("counts: formulas equal the interpreter's counters op by op") {
  const std::string head = "dim b = 2, n = 4, k = 3\ninput x: f32[b n]\ninput ids: i32[b]\nparam w: [n k] ~ normal(std = 1)\n";
  const char* programs[] = {
      "output y = einsum(x, w, \"b n, n k -> b k\")",
      "output y = einsum(x, w, w, \"b n, n k, m k -> b m\")",
      "output y = einsum(x, \"b n -> b\") + mean(x, n)",
      "output y = softmax(x, n)",
      "output y = logsumexp(x, n)",
      "output y = log_softmax(x, n)",
      "output y = cross_entropy(x, ids, n)",
      "output y = cumsum(x, n)",
      "output y = argmax(x, n)",
      "output y = top_k(x, n, 2)",
      "output y = var(x, b, n)",
      "output y = where(x > 0, exp(x), x^2) * 3",
      "output y = one_hot(ids, n) + 0.5",
      "output y = w[n = ids]",
      "output y = concat(x, x * 2, n)",
      "output y = pad(x, n = (1, 2))",
      "output y = einsum(pad(x, n = (1, 1)), \"b (p + q) -> b p q\", q = 3) * 2",
      "output y = reduce(x, \"b (p q) -> b p\", \"max\", q = 2)",
      "output y = dropout(x * 2, 0.5)",
      "output y = einsum(x, w, \"b n, n k -> (2*b + k)\")",
      "output y = einsum(x, \"b n -> b (3*n)\")",
      "output y = einsum(x, iota(k), \"b n, k -> b (n + k)\")",
      "output y = normal(b, n) + x",
      "output y = any(x > 0, n)",
      "loss = mean(relu(einsum(x, w, \"b n, n k -> b k\")))\nminimize loss using sgd(lr = 0.1)",
      "loss = mean(cross_entropy(einsum(x, w, \"b n, n k -> b k\"), ids, k))\nminimize loss using adamw(lr = 0.1, clip_norm = 1.0)",
      "loss = sum(w[n = ids]^2)\nminimize loss using momentum(lr = 0.1)",
      "loss = sum(max(x * w[k = 0], n))\nminimize loss using adagrad(lr = 0.1)",
      "loss = sum(cumsum(w, n)^2) + logsumexp(w, n, k)\nminimize loss using rmsprop(lr = 0.1)",
  };
  for (const char* program : programs) {
    const Graph graph = compile_text(head + program);
    check_counts(program, graph, {});
    check_counts(program, graph, {{"b", 3}, {"n", 6}, {"k", 2}});
  }
}
