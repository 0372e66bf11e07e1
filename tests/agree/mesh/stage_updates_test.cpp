// SPDX-License-Identifier: Apache-2.0
// What a step of a pipeline stores: where the old values lie, in all stages or in none.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/context/partition_for_mesh.h"
#include "compiler/report/staged_device.h"
#include "runtime/mesh/pipeline_plan.h"
#include "tests/agree/mesh/mesh_run.h"
#include "tests/support/random_check.h"
#include "tests/support/run_cuda.h"

using namespace einc;

namespace {

Graph staged_graph(const std::string& text, Policy precision = Policy::f32) {
  PipelineOptions options;
  options.precision = precision, options.roots = Roots::step;
  const Compilation c = compile_text("m.ein", text, options);
  REQUIRE_MESSAGE(c.graph.has_value(), text);
  return *c.graph;
}

// Three layers on three stages.
std::string layers_with(const std::string& optimizer) {
  return "dim batch = 4, width = 3, layers = 3\nmesh stage = 3\nshard layers over stage (microbatches = 2)\n"
         "input x: f32[batch width]\ninput target: f32[batch width]\n"
         "fn block(x: [batch width]) {\n  param w: [inner=width width] ~ normal(std = 0.4)\n"
         "  return tanh(einsum(x, w, \"batch inner, inner width -> batch width\"))\n}\n"
         "y = x\nfor layer in layers { y = block(y) as h }\nloss = mean((y - target)^2)\nminimize loss using " +
         optimizer + "\n";
}
// With a clipped norm stages hear of one another before they store.
constexpr const char* kOptimizers[] = {"adam(lr = 0.1)", "adam(lr = 0.1, clip_norm = 1.0)"};

struct FaultyStep {
  const char* what;
  ProgramData data;
  NonFinite wanted;
};
// A loss that only the last stage makes, a gradient that is infinite in the first alone, and moments that one stage has.
std::vector<FaultyStep> faulty_steps(const ProgramData& good) {
  std::vector<FaultyStep> rows;
  const auto add = [&](const char* what, NonFinite wanted) -> ProgramData& { return rows.emplace_back(what, good, wanted).data; };
  const auto fill = [](TensorMap& tensors, const char* name, double with) {
    for (double& x : tensors.at(Name(name)).reals) x = with;
  };
  fill(add("loss", NonFinite::loss).inputs, "target", HUGE_VAL);
  ProgramData& steep = add("gradient", NonFinite::gradient);  // the first weights are zero, so that nothing of x is seen behind them
  fill(steep.inputs, "x", 3e38), fill(steep.inputs, "target", 1e3), fill(steep.params, "h.0.w", 0);
  for (const char* const moment : {"h.0.w.m", "h.1.w.v", "h.2.w.m"})
    for (auto& [name, state] : add(moment, NonFinite::state).states)
      if (name.str().ends_with(moment)) state.reals[0] = std::nan("");
  return rows;
}

std::vector<Ended> ends_of(const MeshProgram& program, int processes, const ProgramData& faulty, const ProgramData& good) {
  return in_processes(program, processes, [&](const MeshProgram& own) { return ended(own, faulty, good); });
}

}  // namespace

TEST_CASE("mesh stages: what is not finite in one stage is stored in none") {
  for (const char* const optimizer : kOptimizers) {
    const Graph graph = staged_graph(layers_with(optimizer));
    const auto program = compile_for_mesh(graph, {}, RunMode::training);
    const ProgramData good = data_for(graph, {});
    for (const auto& [what, data, wanted] : faulty_steps(good))
      for (const int processes : {1, 3}) {
        INFO(fmt::format("{}: {} in {} processes", optimizer, what, processes));
        for (const Ended& end : ends_of(*program, processes, data, good)) {
          CHECK(end.fault == wanted);
          CHECK(end.nothing_stored);
        }
      }
  }
}

// From the third run on a GPU plays what it has captured.
TEST_CASE("mesh on a GPU: what is not finite in one stage is stored in none") {
  for (const char* const optimizer : kOptimizers) {
    const Graph graph = staged_graph(layers_with(optimizer));
    const auto program = compile_for_gpus(graph, {}, RunMode::training);
    CHECK(in_places_of_their_own(*program->parts()[Part::training]) == 0);
    const ProgramData good = data_for(graph, {});
    for (const auto& [what, data, wanted] : faulty_steps(good)) {
      INFO(fmt::format("{}: {}", optimizer, what));
      const Ended end = ended(*program, data, good, 3);
      CHECK(end.fault == wanted);
      CHECK(end.nothing_stored);
    }
  }
}

TEST_CASE("mesh stages: a stage that does not wait for all to agree is found") {
  const Graph graph = staged_graph(layers_with(kOptimizers[0]));
  const auto program = compile_for_mesh(graph, {}, RunMode::training);
  const ProgramData good = data_for(graph, {});
  const FaultyStep faulty = faulty_steps(good).back();
  const auto agrees = [](const DeviceStep& step) { return step.act == DeviceAct::agree; };
  for (const size_t stage : {0, 2}) {  // which has nothing to find, and which has the fault
    PerPart<MeshPlan> parts = program->parts();
    const auto spoilt = std::make_shared<PipelinePlan>(*parts[Part::training]->pipeline);
    parts[Part::training]->pipeline = spoilt;
    std::vector<DeviceStep>& steps = spoilt->stages[stage].rounds.back().plan.steps;
    const auto at = std::ranges::find_if(steps, agrees);
    REQUIRE(at != steps.end());
    std::rotate(at, at + 1, steps.end());
    const MeshProgram wrong(program->info, program->mesh(), std::move(parts), nullptr);
    CHECK(!ended(wrong, faulty.data, good).nothing_stored);
  }
}

// Of one microbatch; of several that is refused.
TEST_CASE("mesh stages: a state that a forward changes is looked at and stored with the others") {
  const std::string text =
      "dim batch = 4, width = 3, layers = 2\nmesh stage = 2\nshard layers over stage (microbatches = 1)\n"
      "input x: f32[batch width]\ninput target: f32[batch width]\nstate average: [width] ~ zeros\n"
      "fn block(x: [batch width]) {\n  param w: [width] ~ normal\n  return tanh(x * w)\n}\n"
      "y = x\nfor layer in layers { y = block(y) as h }\naverage <- 0.5 * average + 0.5 * mean(y, batch)\n"
      "loss = mean((y - target)^2)\nminimize loss using momentum(lr = 0.1)\n";
  const Graph graph = staged_graph(text);
  const auto program = compile_for_mesh(graph, {}, RunMode::training);
  CHECK(in_places_of_their_own(*program->parts()[Part::training]) == 0);
  const ProgramData good = data_for(graph, {});
  CHECK(run_difference(*program, good, interpreted(graph, good), 1e-5) == "");
  ProgramData faulty = good;
  faulty.states.at(Name("average")).reals[1] = std::nan("");
  for (const int processes : {1, 2})
    for (const Ended& end : ends_of(*program, processes, faulty, good)) {
      CHECK(end.fault == NonFinite::state);
      CHECK(end.nothing_stored);
    }
}

TEST_CASE("mesh stages: a step under a loss scale is skipped by all stages") {
  const Graph graph = staged_graph(layers_with(kOptimizers[0]), Policy::f16);
  const auto program = compile_for_mesh(graph, {}, RunMode::training);
  ProgramData fine = data_for(graph, {});
  const Name scale("optimizer.loss_scale"), first("h.0.w");
  fine.states.at(scale).reals[0] = 256;
  ProgramData steep = fine;  // gradients are beyond f16
  steep.states.at(scale).reals[0] = 1e9;
  for (const int processes : {1, 3}) {
    CAPTURE(processes);
    const auto runs_on = [&](const ProgramData& data) {
      return in_processes(*program, processes,
                          [&](const MeshProgram& own) { return run_on_mesh(own, data.inputs, data.params, data.states, data.options, 1); });
    };
    for (const MeshRun& run : runs_on(fine)) {
      REQUIRE(run.fault == NonFinite::nothing);
      CHECK(run.values.states.at(scale).reals[0] == 256);
      CHECK(distance(run.values.params.at(first), fine.params.at(first)) > 0);
    }
    for (const MeshRun& run : runs_on(steep)) {
      REQUIRE(run.fault == NonFinite::nothing);
      CHECK(run.values.states.at(scale).reals[0] == 5e8);
      for (const auto& [name, param] : run.values.params) CHECK_MESSAGE(distance(param, fine.params.at(name)) < 1e-6, name.str());
    }
  }
}

// The bias corrections of Adam are numbers that checks and a kernel of a single element's update read.
TEST_CASE("mesh stages: the update of a single element waits for all looks") {
  const std::string text =
      "dim batch = 6, width = 2, layers = 2\nmesh stage = 1, data = 2\nshard layers over stage (microbatches = 3)\n"
      "shard batch over data\nshard gradients over data\ninput x: f32[batch width]\ninput target: f32[batch width]\n"
      "param shared: [inner=width width] ~ normal(std = 0.4)\nparam offset: [width] ~ normal(std = 0.3)\n"
      "fn block(x: [batch width]) {\n  return (x - mean(x, width)) * rsqrt(mean(x^2, width) + 0.5)\n}\n"
      "y = x * 0.5 + offset\nfor layer in layers { y = block(y) as h }\n"
      "result = einsum(y, shared, \"batch inner, inner width -> batch width\")\nloss = mean((result - target)^2)\n"
      "minimize loss using adamw(lr = 0.01, clip_norm = 0.5)\n";
  const auto program = compile_for_mesh(staged_graph(text), {}, RunMode::training);
  const MeshPlan& last = program->parts()[Part::training]->pipeline->stages[0].rounds.back().plan;
  CHECK(std::ranges::count(last.steps, DeviceAct::agree, &DeviceStep::act) == 1);
  CHECK(last.code.compute.program.copies.empty());
}

// What is put together is the update's value; the single element that a device makes of it stands in a kernel of its own.
TEST_CASE("mesh stages: an update's part of a single element waits for all looks") {
  const std::string text =
      "dim batch = 2, width = 2, layers = 2\nmesh stage = 2, data = 2\nshard layers over stage (microbatches = 1)\n"
      "shard batch over data\nshard states over data\ninput a: f32[batch width]\ninput target: f32[batch width]\n"
      "param scale: [] ~ constant(0.7)\nparam offset: [width] ~ normal(std = 0.3)\nfirst = a * 0.5 + offset\nx = first\n"
      "fn block(x: [batch width], first: [batch width], scale: []) { return x + scale * first }\n"
      "for layer in layers { x = block(x, first, scale) as h }\nloss = mean((x * offset + a - target)^2)\n"
      "minimize loss using adamw(lr = 0.01, clip_norm = 0.5)\n";
  const auto program = compile_for_mesh(staged_graph(text), {}, RunMode::training);
  for (const PipelineStage& stage : program->parts()[Part::training]->pipeline->stages)
    CHECK(std::ranges::count(stage.rounds.back().plan.steps, DeviceAct::agree, &DeviceStep::act) == 1);
}

// A table that both ends of the model read, in a model whose optimizer's states are split: larger than all else.
TEST_CASE("mesh stages: what devices update in parts they make of parts, and terms that stages add up are sent in parts") {
  constexpr int64_t kTable = 256 * 16, kLargestBesides = 16 * 64;
  const MeshExample example{"gpt2.ein", "batch=8 seq=8 vocab=256 layers=2 heads=2 head=8", "stage=2,data=2",
                            "layers=stage(microbatches=2); batch=data; states=data"};
  const Bindings dims = dims_of(example.dims);
  const auto made = partition_for_mesh(*compiled(example, Roots::step).graph, dims);
  const auto staged = staged_device(std::get<Partitioned>(made), dims);
  REQUIRE(staged);
  const Graph& graph = staged->whole.graph;
  const auto count = [&](NodeId id) {
    int64_t elements = 1;
    for (const Axis& axis : graph.type(id).axes) elements *= axis.size.evaluate_integer(staged->dims).value();
    return elements;
  };
  int64_t terms = 0;
  for (const StageSend& send : staged->cut.sends)
    if (graph[send.value].origin.phase == Phase::backward && !send.of_microbatch()) terms = std::max(terms, count(send.value));
  CHECK(terms == kTable / 2);
  static_assert(kLargestBesides < kTable / 2);
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (const Node& node = graph.nodes[i]; node.origin.phase == Phase::optimizer && node.op == Op::map)
      CHECK(count(NodeId{i}) <= kTable / 2);
  // Parts of a param are no terms of a sum over microbatches.
  int64_t sums = 0;
  for (const auto& rounds : staged->cut.stages)
    for (const auto& [of_whole, sum] : rounds[kMicrobatchRound].sums) {
      CHECK(graph.nodes[of_whole].op != Op::gather);
      ++sums;
    }
  CHECK(sums > 0);
}
