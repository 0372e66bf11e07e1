// SPDX-License-Identifier: Apache-2.0
// Whatever is computed of a product where it is made, and however many values of that are stored: it stays a contraction, to be
// done in tiles.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/fuse/form_graph.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

struct ContractionCase {
  const char *what, *layer;  // of x [b h] to y [b d]
};

const ContractionCase kContractionCases[] = {
    {"dropout", "y = dropout(einsum(gelu(x), w, \"b h, h d -> b d\"), 0.2)\n"},
    {"dropout and a residual", "y = r + dropout(einsum(gelu(x), w, \"b h, h d -> b d\"), 0.2)\n"},
    {"a bias and a function", "y = r + gelu(einsum(x, w, \"b h, h d -> b d\") + g)\n"},
    {"an activation and dropout", "y = dropout(relu(einsum(x, w, \"b h, h d -> b d\") + g), 0.5)\n"},
};

std::string program(const char* layer) {
  return std::string(
             "dim b = 128, d = 256, h = 192, o = 128\ninput data: f32[b d]\ninput r: f32[b d]\nparam w0: [d h] ~ normal(std = 1)\n"
             "param w: [h d] ~ normal(std = 1)\nparam g: [d] ~ ones\nparam w2: [d o] ~ normal(std = 1)\nx = einsum(data, w0, \"b d, d h -> "
             "b h\")\n") +
         layer + "z = einsum(y, w2, \"b d, d o -> b o\")\nloss = sum(z * z)\nminimize loss using sgd(lr = 0.1)\n";
}

}  // namespace

TEST_CASE("contractions: what is stored beside a product leaves it a contraction") {
  for (const ContractionCase& test : kContractionCases) {
    CAPTURE(test.what);
    const Graph graph = simplify(expand(compile_text(program(test.layer), {}), Roots::training), Roots::training);
    const FormedGraph formed = form_graph(graph, {{"b", 128}, {"d", 256}, {"h", 192}, {"o", 128}}, RunMode::training, Scheduling::all);
    int products = 0;
    for (const GraphKernel& k : formed.list.kernels) {
      const bool multiplies =
          std::any_of(k.group.members.begin(), k.group.members.end(), [&](NodeId id) { return formed.bound.graph[id].op == Op::contract; });
      if (!multiplies) continue;
      ++products;
      CHECK(k.kernel->contraction);
    }
    CHECK(products == 8);
  }
}
