// SPDX-License-Identifier: Apache-2.0
// The plan of buffers of whole programs, verified: every read finds its value. Other tests verify too (EINC_DEBUG=1); here each program
// is planned in every precision, mode and way of fusion.
#include <doctest/doctest.h>

#include <vector>

#include "compiler/elaborate/elaborate.h"
#include "compiler/fuse/form_graph.h"
#include "compiler/lower/verify_plan.h"
#include "compiler/precision/assign.h"
#include "compiler/report/report.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"

using namespace einc;

namespace {

Graph compiled(const std::string& file, const Bindings& dims, Policy policy) {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto id = sources.load(EINC_SOURCE_DIR "/" + file, diagnostics);
  REQUIRE(id);
  auto graph = elaborate(sources, *id, {.dims = dims, .precision = policy}, diagnostics);
  REQUIRE(graph);
  return assign_precision(simplify(expand(std::move(*graph), Roots::training), Roots::training), policy);
}

void check_plan(const std::string& file, const Bindings& dims) {
  CAPTURE(file);
  for (Policy policy : {Policy::f32, Policy::bf16, Policy::f16, Policy::fp8}) {
    const Graph graph = compiled(file, dims, policy);
    for (RunMode mode : {RunMode::training, RunMode::inference})
      for (Scheduling scheduling : {Scheduling::unfused, Scheduling::all}) {
        const FormedGraph formed = form_graph(graph, dims, mode, scheduling);
        CHECK(verify_plan(formed.bound, formed.list, formed.plan, formed.roots) == "");
      }
    CHECK(peak_training_bytes(graph, dims, plan_for_processor({})) ==
          build_report(graph, {.given = dims, .detail = Detail::totals, .device = {}, .training = {}}).memory.peak_training.value);
  }
}

}  // namespace

TEST_CASE("the gradients of a table that is read twice are one buffer") {
  const Graph graph =
      compiled("examples/gpt2.ein", {{"batch", 2}, {"seq", 9}, {"vocab", 17}, {"layers", 1}, {"heads", 2}, {"head", 5}}, Policy::f32);
  const FormedGraph formed =
      form_graph(graph, {{"batch", 2}, {"seq", 9}, {"vocab", 17}, {"layers", 1}, {"heads", 2}, {"head", 5}}, RunMode::training);
  REQUIRE(formed.list.continued.size() == 2);  // of the logits too: that of the softmax, then those of the targets
  for (const auto& [base, whole] : formed.list.continued) {
    CHECK(formed.plan.buffers[base.index].place == BufferPlace::in_target);
    CHECK(formed.plan.buffers[base.index].target == whole);
  }
  const auto& [base, whole] = formed.list.continued[1];
  CHECK(formed.bound.graph[base].op == Op::contract);
  CHECK(formed.plan.buffers[whole.index].place == BufferPlace::gradient);
}

TEST_CASE("every read finds its value") {
  check_plan("examples/two_layer.ein", {{"batch", 20}, {"width", 7}, {"out", 5}});
  check_plan("examples/gpt2.ein", {{"batch", 2}, {"seq", 9}, {"vocab", 17}, {"layers", 3}, {"heads", 2}, {"head", 5}});
  check_plan("examples/llama.ein",
             {{"batch", 1}, {"seq", 8}, {"vocab", 30}, {"layers", 3}, {"embed", 16}, {"heads", 4}, {"kv_heads", 2}, {"ffn", 24}});
  check_plan("examples/cnn.ein", {{"batch", 2}});
  check_plan("examples/two_layer.ein", {{"batch", 700}, {"width", 8}, {"out", 192}});  // a loss that is summed in parts
}
