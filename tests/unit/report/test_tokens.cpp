// SPDX-License-Identifier: Apache-2.0
// Tokens are counted where the loss has some, examples elsewhere.
#include <doctest/doctest.h>

#include "compiler/pipeline/pipeline.h"
#include "compiler/report/report.h"
#include "dsl/render.h"

using namespace einc;

TEST_CASE("tokens and examples of a step") {
  struct Row {
    const char* what;
    const char* program;
    bool of_tokens;
    const char *tokens, *examples;
  };
  const Row rows[] = {
      {"a language model",
       "dim batch, seq, v = 50\ninput t: i32[batch seq]\ninput next: i32[batch seq]\nparam e: [v d=8] ~ normal(std = 1)\n"
       "loss = mean(cross_entropy(einsum(e[v = t], e, \"batch seq d, v d -> batch seq v\"), next, v))\n",
       true, "batch*seq", "batch"},
      {"tokens in one list",
       "dim n, v = 50\ninput t: i32[n]\ninput next: i32[n]\nparam e: [v d=8] ~ normal(std = 1)\n"
       "loss = mean(cross_entropy(einsum(e[v = t], e, \"n d, v d -> n v\"), next, v))\n",
       true, "n", "n"},
      {"smoothed labels, some of them ignored",
       "import nn\ndim batch, seq, v = 50\ninput t: i32[batch seq]\nparam e: [v d=8] ~ normal(std = 1)\n"
       "loss = token_cross_entropy(einsum(e[v = t], e, \"batch seq d, v d -> batch seq v\"), t, smoothing = 0.1)\n",
       true, "batch*seq", "batch"},
      {"pictures",
       "dim batch, c = 10\ninput x: f32[batch p=64]\ninput label: i32[batch]\nparam w: [p=64 c] ~ normal(std = 1)\n"
       "loss = mean(cross_entropy(einsum(x, w, \"batch p, p c -> batch c\"), label, c))\n",
       false, "batch", "batch"},
      {"regression",
       "dim batch, out = 3\ninput x: f32[batch p=64]\ninput y: f32[batch out]\nparam w: [p=64 out] ~ normal(std = 1)\n"
       "loss = mean((einsum(x, w, \"batch p, p out -> batch out\") - y)^2)\n",
       false, "batch*out", "batch"},
      {"a graph",
       "dim n, e\ninput x: f32[n d=4]\ninput from: i32[e]\nparam w: [d=4] ~ normal(std = 1)\n"
       "loss = mean(einsum(x[n = from], w, \"e d, d -> e\")^2)\n",
       false, "e", "1"},
      {"examples that the program draws, with dropout inside",
       "dim batch, n\nx = uniform(batch, n)\nk = randint(0, 3, batch)\nparam w: [n] ~ normal(std = 1)\n"
       "loss = mean((einsum(dropout(x, 0.5), dropout(w, 0.1), \"batch n, n -> batch\") - k)^2)\n",
       false, "batch", "batch"},
      {"a graph that the program draws",
       "dim n, e\nfrom = randint(0, n, e)\nparam w: [n] ~ normal(std = 1)\nloss = mean((w[n = from] - uniform(n)[n = from])^2)\n", false,
       "e", "1"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const Compilation c = compile_text("m.ein", row.program + std::string("minimize loss using sgd(lr = 0.1)\n"), {});
    REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
    const Report report = build_report(*c.graph, {});
    CHECK(report.six_nd.of_tokens == row.of_tokens);
    CHECK(report.six_nd.tokens.formula.str() == row.tokens);
    CHECK(report.examples.formula.str() == row.examples);
    CHECK(report.per_example.formula * report.examples.formula == report.step.formula);
  }
}
