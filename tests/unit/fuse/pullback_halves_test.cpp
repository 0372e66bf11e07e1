// SPDX-License-Identifier: Apache-2.0
// A pullback's kernels: those that make the outputs, then those that pull gradients back, and no product of the forward in both.
#include "compiler/fuse/pullback_halves.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "compiler/fuse/form_graph.h"
#include "compiler/pipeline/pipeline.h"

using namespace einc;

namespace {

struct HalvesCase {
  const char* what;
  const char* text;
};

const HalvesCase kHalvesCases[] = {
    {"a transformer block",
     "import nn\ndim batch = 2, seq = 32, embed = 64, heads = 4, head = embed / heads\ninput x: f32[batch seq embed]\n"
     "x = x + attention(layer_norm(x) as ln_1, heads, head, causal = true) as attn\n"
     "output y = x + mlp(layer_norm(x) as ln_2, 4 * embed) as mlp\n"},
    {"a value that output and gradient share", "dim n = 64\ninput x: f32[n]\ninput z: f32[n]\noutput q = sum(sin(x) * z)\n"},
    {"a gradient that is there before the output's", "dim n = 64\ninput x: f32[n]\noutput y = exp(x)\noutput z = sum(exp(x))\n"},
    {"attention alone: its gradient reads no output",
     "import nn\ndim batch = 2, seq = 32, embed = 64, heads = 4, head = embed / heads\ninput x: f32[batch seq embed]\n"
     "output y = attention(x, heads, head, causal = true) as attn\n"},
    {"a sum by index onto a value",
     "dim n = 64, k = 8\ninput x: f32[n]\ninput u: f32[k]\ninput ids: i32[k]\n"
     "output y = exp(x) + segment_sum(u, ids, n, k)\n"},
};

struct Formed {
  Compilation compilation;
  std::optional<FormedGraph> formed;
  const Graph& graph() const { return formed->bound.graph; }
};

Formed form_pullback(const char* text) {
  PipelineOptions options;
  options.roots = Roots::inference;
  options.pullback = Pullback::of_outputs;
  Formed f{compile_text("test.ein", text, options), {}};
  REQUIRE(f.compilation.graph);
  f.formed.emplace(form_graph(*f.compilation.graph, {}, RunMode::inference));
  return f;
}

}  // namespace

TEST_CASE("the first half of a pullback makes the outputs without gradients of theirs, the second one makes none of its products again") {
  for (const HalvesCase& c : kHalvesCases) {
    CAPTURE(std::string(c.what));
    const Formed f = form_pullback(c.text);
    const auto& kernels = f.formed->list.kernels;
    const std::optional<size_t> half = first_half(f.formed->bound, f.formed->list, f.formed->roots);
    REQUIRE(half);
    CHECK(*half > 0);
    CHECK(*half < kernels.size());
    std::vector<int> made(f.graph().size(), 0);
    for (size_t k = 0; k < kernels.size(); ++k)
      for (NodeId id : kernels[k].group.members) {
        const Node& node = f.graph()[id];
        if (k < *half) CHECK(!f.formed->bound.is_pulled(id));
        if (node.op != Op::contract) continue;
        ++made[id.index];
        if (node.origin.phase == Phase::forward) CHECK(k < *half);
        if (node.origin.phase == Phase::backward) CHECK(k >= *half);
      }
    CHECK(*std::max_element(made.begin(), made.end()) <= 1);
  }
}

TEST_CASE("what is no pullback has no halves") {
  const Compilation c = compile_text("test.ein", "dim n = 64\ninput x: f32[n]\noutput y = exp(x)\n", {});
  const FormedGraph formed = form_graph(*c.graph, {}, RunMode::inference);
  CHECK(!first_half(formed.bound, formed.list, formed.roots));
}
