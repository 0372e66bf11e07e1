// SPDX-License-Identifier: Apache-2.0
// Rows that are gathered for a sum by index alone, as messages along the edges of a graph are, lie nowhere.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/fuse/form_graph.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

const Bindings kGraphSizes = {{"nodes", 50}, {"edges", 300}, {"width", 8}};

// Of gathers, those that are in memory.
int64_t stored_gathers(const std::string& body) {
  const std::string text =
      "dim nodes, edges, width\ninput h: f32[nodes width]\ninput a: f32[nodes]\ninput from: i32[edges]\ninput to: i32[edges]\n" + body;
  const Graph graph = simplify(expand(compile_text(text, kGraphSizes), Roots::training), Roots::training);
  const FormedGraph formed = form_graph(graph, kGraphSizes, RunMode::inference, Scheduling::all);
  int64_t stored = 0;
  for (uint32_t i = 0; i < formed.bound.graph.size(); ++i)
    stored += formed.bound.graph.nodes[i].op == Op::gather && formed.list.in_memory[i] ? 1 : 0;
  return stored;
}

}  // namespace

TEST_CASE("sums by index: what they alone gather lies nowhere") {
  CHECK(stored_gathers("output y = segment_sum(h[nodes = from], to, nodes)\n") == 0);
  CHECK(stored_gathers("output y = segment_max(h[nodes = from], to, nodes)\n") == 0);
  CHECK(stored_gathers("output y = segment_mean(h[nodes = from], to, nodes) + segment_mean(h[nodes = to], from, nodes)\n") == 0);
}

// Another reader has it from memory, too. Of a single column no thread takes a part.
TEST_CASE("sums by index: what others read, or what has no columns, is stored") {
  CHECK(stored_gathers("x = h[nodes = from]\noutput y = segment_sum(x, to, nodes)\noutput z = x\n") == 1);
  CHECK(stored_gathers("x = h[nodes = from]\noutput y = segment_sum(x, to, nodes)\noutput z = segment_sum(x, from, nodes)\n") == 1);
  CHECK(stored_gathers("output y = segment_sum(a[nodes = from], to, nodes)\n") == 1);
}
