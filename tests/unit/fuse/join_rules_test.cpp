// SPDX-License-Identifier: Apache-2.0
// What rules know of a value that is reduced as a whole, and of numbers made of several such. They know it once they are made: nothing has
// to be asked of them before.
#include "compiler/fuse/join_rules.h"

#include <doctest/doctest.h>

#include "compiler/lower/bound_graph.h"
#include "tests/support/run_graph.h"

using namespace einc;

TEST_CASE("join rules: numbers of several large values are told from the reductions that they are made of") {
  const Graph graph = compile_text("input x: f32[n=131072]\ninput y: f32[n]\noutput m = max(max(x, n), max(y, n))\n", {});
  const BoundGraph bound = bind_graph(graph, {}, std::vector<bool>(graph.size(), true));
  const NodeId number = graph.outputs[0].node;
  const ValuePlaces values(bound, {number});
  KernelTarget target;
  target.whole_reductions = WholeReductions::joined;
  const JoinRules rules(bound, values, target);
  const GroupWork gathered = rules.work_of(number);
  CHECK(gathered.gathers);
  CHECK(!gathered.reduces_whole);
  for (const NodeId x : graph[number].operands) {
    const GroupWork reduced = rules.work_of(x);
    CHECK(reduced.reduces_whole);
    CHECK(!reduced.gathers);
    CHECK(rules.unsuitable(reduced, gathered) == "numbers of several large values meet once all are there");
  }
  target.whole_reductions = WholeReductions::alone;
  CHECK(!JoinRules(bound, values, target).work_of(number).gathers);
}
