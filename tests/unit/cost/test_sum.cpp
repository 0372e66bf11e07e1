// SPDX-License-Identifier: Apache-2.0
// Folding of unrolled loops in formulas, in totals and module rows.
#include <doctest/doctest.h>

#include "compiler/cost/modules.h"
#include "compiler/cost/sum.h"

using namespace einc;

namespace {

// One loop of `layers` iterations (12 in use), contexts 1..12.
Graph looped(int64_t count) {
  Graph g;
  g.loops.push_back({Poly::dim("layers"), count});
  for (int64_t i = 0; i < count; ++i) g.loop_contexts.push_back({0, 0, i});
  return g;
}

std::string total(const LoopSum& sum) { return sum.totals()[0].str(); }

}  // namespace

TEST_CASE("equal iterations fold to the trip count") {
  const Graph g = looped(12);
  LoopSum sum(g, 1);
  const Poly a = Poly::dim("a");
  sum.add(0, 0, a * a);
  for (uint32_t c = 1; c <= 12; ++c) {
    sum.add(0, c, Poly(2) * a);
    sum.add(0, c, Poly(1));
  }
  CHECK(total(sum) == "a^2 + 2*a*layers + layers");
}

TEST_CASE("one iteration differs") {
  const Graph g = looped(12);
  LoopSum sum(g, 1);
  const Poly a = Poly::dim("a");
  for (uint32_t c = 1; c <= 12; ++c) sum.add(0, c, c == 1 ? Poly(5) : Poly(2) * a);
  CHECK(total(sum) == "2*a*layers - 2*a + 5");
  LoopSum silent(g, 1);
  for (uint32_t c = 2; c <= 12; ++c) silent.add(0, c, a);
  CHECK(total(silent) == "a*layers - a");
}

TEST_CASE("iterations of growing sizes add up plainly") {
  const Graph g = looped(3);
  LoopSum sum(g, 1);
  for (uint32_t c = 1; c <= 3; ++c) sum.add(0, c, Poly(c) * Poly::dim("a"));
  CHECK(total(sum) == "6*a");
}

TEST_CASE("nested loops") {
  Graph g;
  g.loops.push_back({Poly::dim("n"), 3});
  for (int64_t i = 0; i < 3; ++i) {
    g.loop_contexts.push_back({0, 0, i});
    const auto outer = static_cast<uint32_t>(g.loop_contexts.size() - 1);
    g.loops.push_back({Poly::dim("m"), 2});
    for (int64_t j = 0; j < 2; ++j) g.loop_contexts.push_back({outer, static_cast<uint32_t>(g.loops.size() - 1), j});
  }
  LoopSum sum(g, 2);
  for (uint32_t c = 1; c < g.loop_contexts.size(); ++c)
    if (g.loop_contexts[c].parent != 0) sum.add(1, c, Poly::dim("a"));
  CHECK(sum.totals()[0].is_zero());
  CHECK(sum.totals()[1].str() == "a*m*n");
}

TEST_CASE("modules: every prefix sums what is below it") {
  const Graph g = looped(12);
  ModuleSums sums(g);
  const Poly a = Poly::dim("a");
  Origin origin;
  sums.add(ModuleColumn::flops_step, origin, Poly(7));
  for (uint32_t c = 1; c <= 12; ++c) {
    origin.loop_context = c;
    origin.module = Name("h." + std::to_string(c - 1) + ".attn");
    sums.add(ModuleColumn::flops_step, origin, a);
    origin.module = Name("h." + std::to_string(c - 1));
    sums.add(ModuleColumn::flops_step, origin, Poly(1));
  }
  const std::vector<ModuleRow> rows = sums.rows();
  REQUIRE(rows.size() == 2 + 2 * 12);
  CHECK(rows[0].path == "");
  CHECK(rows[0][ModuleColumn::flops_step].str() == "a*layers + layers + 7");
  CHECK(rows[1].path == "h");
  CHECK(rows[1][ModuleColumn::flops_step].str() == "a*layers + layers");
  CHECK(rows[2].path == "h.0");
  CHECK(rows[3].path == "h.0.attn");
  CHECK(rows[3][ModuleColumn::flops_step].str() == "a");
  CHECK(starred("h.11.attn.w_0") == "h.*.attn.w_0");
}
