// SPDX-License-Identifier: Apache-2.0
// `save every k` changes what is kept, and no bit of what is computed.
#include <doctest/doctest.h>

#include "compiler/fuse/cut_scans.h"
#include "compiler/fuse/form_graph.h"
#include "compiler/ir/remap.h"
#include "compiler/ir/verify.h"
#include "tests/support/saved_recurrences.h"

using namespace einc;

namespace {

CpuRun interpreted(const Wanted& w, const Graph& graph) {
  const InterpretResult made = interpret(graph, {}, w.inputs, w.params, w.states, w.options);
  return {made.outputs, made.loss, made.params, made.states, made.gradients};
}

}  // namespace

TEST_CASE("save every k changes no bit on processors, for any number of threads") {
  for (const SavedProgram& program : saved_programs()) {
    CAPTURE(program.name);
    for (const int threads : {1, 2})
      CHECK(changed_by_save_every(
                program, [&](const Wanted& w) { return run_cpu(w.graph, {}, w.inputs, w.params, w.states, w.options, threads); }) == "");
  }
}

TEST_CASE("save every k changes no bit of the interpreter, before and after scans are cut") {
  for (const SavedProgram& program : saved_programs()) {
    CAPTURE(program.name);
    CHECK(changed_by_save_every(program, [](const Wanted& w) { return interpreted(w, w.graph); }) == "");
    CHECK(changed_by_save_every(program, [](const Wanted& w) {
            std::vector<NodeId> roots;
            Graph graph = w.graph;
            for_each_root(graph, [&](NodeId id) { roots.push_back(id); });
            const CutScans cut = cut_scans(bind_graph(graph, {}, std::vector<bool>(graph.size(), true)), roots);
            if (!cut.graph) return interpreted(w, graph);
            CHECK(verify(*cut.graph).empty());
            return interpreted(w, *cut.graph);
          }) == "");
  }
}

TEST_CASE("save every k changes no bit where nothing is fused and nothing written in place") {
  Scheduling apart = Scheduling::unfused;
  apart.without.push_back("in_place");
  for (const Scheduling& scheduling : {apart, Scheduling::all.and_without("in_place")})
    CHECK(changed_by_save_every({"a layer", kSavedLayer, 11}, [&](const Wanted& w) {
            return run_cpu(w.graph, {}, w.inputs, w.params, w.states, w.options, 2, scheduling);
          }) == "");
}

// 64 iterations in pieces of 8: 8 carries, and a piece of what else is kept.
TEST_CASE("save every k keeps the root of what is kept otherwise") {
  const std::string text = R"(input x: [time=64 n=8]
param w: [n] ~ normal
h = 0
scan t in time%s {
  h = tanh(h * w + dropout(x[time = t], 0.3)) * sigmoid(h)
}
minimize sum(h^2) using sgd(lr = 0.1)
)";
  std::vector<int64_t> bytes;
  for (const char* saved : {"", ", save every 8", ", save every 9"}) {
    std::string problem, program = text;
    program.replace(program.find("%s"), 2, saved);
    const auto made = interpret_text(program, 1, problem);
    REQUIRE(problem == "");
    bytes.push_back(form_graph(made->graph, {}, RunMode::training).plan.own_bytes);
  }
  CHECK(bytes[1] * 2 < bytes[0]);
  CHECK(bytes[2] * 2 < bytes[0]);
}
