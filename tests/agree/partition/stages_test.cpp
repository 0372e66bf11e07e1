// SPDX-License-Identifier: Apache-2.0
// Stages of a pipeline give what the program gives on one device: each stage's graph in the interpreter, again and again with what the
// others have sent so far, and NaN for what they have not. What is sent for GPT-2 stands here as the literature has it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "compiler/ir/verify.h"
#include "compiler/partition/cut_stages.h"
#include "compiler/partition/pipeline_timeline.h"
#include "compiler/report/report.h"
#include "compiler/report/staged_device.h"
#include "runtime/base/failure.h"
#include "tests/fuzz/random_program.h"
#include "tests/support/mesh_examples.h"
#include "tests/support/random_check.h"

using namespace einc;

namespace {

constexpr double kOfStages = 1e-12;

struct Cut {
  Localized whole;
  StagePlaces places;
  StagePrograms programs;
};

Cut cut_of(const Graph& graph, const Bindings& dims) {
  auto made = partition(graph, dims);
  REQUIRE(std::holds_alternative<Partitioned>(made));
  Cut cut{localize(std::get<Partitioned>(made)), {}, {}};
  cut.places = place_stages(cut.whole.graph, graph.mesh.stages.loop, stages_of(cut.whole.graph, dims));
  cut.programs = cut_stages(cut.whole, cut.places);
  return cut;
}

Tensor unknown(const Type& type, const Bindings& values) {
  std::vector<int64_t> shape;
  for (const Axis& axis : type.axes) shape.push_back(axis.size.evaluate_integer(values).value());
  Tensor tensor = Tensor::zeros(type.dtype, shape);
  for (double& x : tensor.reals) x = std::numeric_limits<double>::quiet_NaN();
  return tensor;
}

// How often values cross stages on the longest way to a result.
int crossings(const Cut& cut) {
  std::vector<int> depth(cut.whole.graph.size(), 0);
  for (uint32_t i = 0; i < cut.whole.graph.size(); ++i)
    for (const NodeId x : cut.whole.graph.nodes[i].operands)
      depth[i] =
          std::max(depth[i], depth[x.index] +
                                 (cut.places.of[i] != cut.places.of[x.index] || cut.places.round[i] != cut.places.round[x.index] ? 1 : 0));
  return *std::ranges::max_element(depth) + 1;  // an update's value may be another stage's
}

// Results of all stages together, when nothing changes any more.
InterpretResult run_stages(const Cut& cut, const ProgramData& data) {
  const Bindings values = cut.whole.graph.dims.bind(data.dims).values;
  TensorMap sent;
  for (const std::vector<StageProgram>& rounds : cut.programs.stages)
    for (const StageProgram& stage : rounds)
      for (const NodeId value : stage.taken) sent.insert_or_assign(stage_value_name(value), unknown(cut.whole.graph.type(value), values));
  InterpretResult all;
  for (int left = crossings(cut); left >= 0; --left) {
    all = {};
    for (const std::vector<StageProgram>& rounds : cut.programs.stages)
      for (const StageProgram& stage : rounds) {
        TensorMap inputs = data.inputs;
        for (const auto& [name, value] : sent) inputs.insert_or_assign(name, value);
        InterpretResult found = interpret(stage.local.graph, data.dims, inputs, data.params, data.states, data.options);
        for (auto& [name, value] : found.outputs)
          if (sent.contains(name))
            sent.insert_or_assign(name, value);
          else
            all.outputs.emplace_back(name, std::move(value));
        if (found.loss) all.loss = std::move(found.loss);
        for (auto& [path, value] : found.params) all.params.insert_or_assign(path, std::move(value));
        for (auto& [path, value] : found.states) all.states.insert_or_assign(path, std::move(value));
      }
  }
  const auto number = [&](const auto& output) {
    return std::ranges::find(cut.whole.graph.outputs, output.first, &Output::name) - cut.whole.graph.outputs.begin();
  };
  std::ranges::sort(all.outputs, {}, number);
  return all;
}

std::string stages_problem(const Graph& graph, const ProgramData& data) {
  const Cut cut = cut_of(graph, data.dims);
  for (const std::vector<StageProgram>& rounds : cut.programs.stages)
    for (const StageProgram& stage : rounds)
      if (const auto wrong = verify(stage.local.graph); !wrong.empty()) return "verify: " + wrong[0];
  InterpretResult wanted = interpret(graph, data.dims, data.inputs, data.params, data.states, data.options);
  wanted.gradients.clear();  // none of them leaves its device
  return result_difference(run_stages(cut, data), wanted, kOfStages);
}

Compilation staged(const char* file, const char* dims, int stages, int microbatches) {
  const std::string mesh = fmt::format("stage={}", stages), shard = fmt::format("layers=stage(microbatches={})", microbatches);
  return compiled({file, dims, mesh.c_str(), shard.c_str()}, Roots::training);
}

constexpr const char* kGpt = "batch=4 seq=6 vocab=16 layers=6 heads=4 head=3";

}  // namespace

TEST_CASE("stages: examples give what they give on one device") {
  const std::pair<const char*, const char*> examples[] = {
      {"gpt2.ein", kGpt},
      {"llama.ein", "batch=4 seq=6 vocab=16 layers=6 embed=16 heads=4 kv_heads=2 ffn=8"},
      {"vit.ein", "batch=4 rows=2 cols=2 side=2 classes=3 layers=6 heads=2 head=2"},
      {"nanogpt.ein", "batch=4 seq=6 vocab=16 layers=6 heads=2 head=2"},
      {"deep_linear.ein", "batch=4 width=3 layers=6"}};
  for (const auto& [file, dims_text] : examples)
    for (const int stages : {1, 2, 3, 4, 6}) {
      INFO(std::string(file));
      CAPTURE(stages);
      const Compilation c = staged(file, dims_text, stages, 2);
      const Bindings dims = dims_of(dims_text);
      CHECK(stages_problem(*c.graph, data_for(*c.graph, dims)) == "");
    }
}

// Scans with weights in front of the loop, in its iterations and behind it; a state that each iteration moves; a weight that all read.
TEST_CASE("stages: recurrences, states and weights of several stages") {
  const std::string text = R"(
dim batch = 4, seq = 3, embed = 2, layers = 4
mesh stage = 2
shard layers over stage (microbatches = 2)
input x: f32[batch seq embed]
param shared: [inner=embed embed] ~ normal(std = 0.5)
state seen: [embed] ~ zeros
fn recurrent(x: [batch seq embed]) {
  param w: [inner=embed embed] ~ normal(std = 0.5)
  h = zeros(batch, embed)
  scan t in seq {
    h = tanh(x[seq = t] + einsum(h, w, "batch inner, inner embed -> batch embed"))
    collect hs = h
  }
  return rearrange(hs, "seq batch embed -> batch seq embed")
}
y = recurrent(x) as front
sums = seen
for layer in layers {
  y = y + recurrent(y) as h
  y = einsum(y, shared, "batch seq inner, inner embed -> batch seq embed")
  sums = sums + reduce(y, "batch seq embed -> embed", "sum")
}
seen <- sums
y = recurrent(y) as back
output y
loss = mean(y^2)
minimize loss using adam(lr = 0.01)
)";
  std::string problem;
  auto given = interpret_text(text, 1, problem, RunMode::training);
  REQUIRE_MESSAGE(given, problem);
  given->options.arithmetic = Arithmetic::exact;
  CHECK(stages_problem(given->graph, {{}, given->inputs, given->params, given->states, given->options}) == "");
}

namespace {

// Any stage for any node; what needs no weights may be made everywhere.
StagePlaces random_places(const Graph& graph, int stages, uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<bool> none(graph.size(), false), all(graph.size(), true);
  StagePlaces places{stages, {}, none, none, std::vector<int>(graph.size(), kMicrobatchRound), 2, all};
  for (const Node& node : graph.nodes) {
    const bool declared = node.op == Op::param || (node.op == Op::state && node.type.rank() > 0);
    const bool may_repeat = !declared && std::ranges::all_of(node.operands, [&](NodeId x) { return places.of[x.index] == kEveryStage; });
    const int place = may_repeat && random() % 2 == 0 ? kEveryStage : static_cast<int>(random() % static_cast<uint64_t>(stages));
    places.of.push_back(node.op == Op::scan_result ? places.of[node.operands[0].index] : place);  // a scan is no value
  }
  return places;
}

}  // namespace

TEST_CASE("stages: random programs cut anywhere") {
  int sends = 0, refused = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    std::string problem;
    auto given = interpret_text(random_program(seed).text(), seed, problem, RunMode::training);
    REQUIRE_MESSAGE(given, problem);
    given->graph.mesh.axes = {{Name("stage"), Poly(3)}};
    auto made = partition(given->graph, {});
    if (!std::holds_alternative<Partitioned>(made)) continue;
    Cut cut{localize(std::get<Partitioned>(made)), {}, {}};
    cut.places = random_places(cut.whole.graph, 3, seed);
    cut.programs = cut_stages(cut.whole, cut.places);
    sends += static_cast<int>(cut.programs.sends.size());
    given->options.arithmetic = Arithmetic::exact;
    const ProgramData data{{}, given->inputs, given->params, given->states, given->options};
    InterpretResult wanted = interpret(given->graph, {}, data.inputs, data.params, data.states, data.options);
    wanted.gradients.clear();
    std::string difference;
    try {
      difference = result_difference(run_stages(cut, data), wanted, 0);
    } catch (const RuntimeFailure&) {
      ++refused;  // a 0 that stands for what is not sent yet divides
    }
    CHECK(difference == "");
  }
  CHECK(refused <= 3);
  CHECK(sends > 1000);
}

// What goes through: an activation up and its gradient down, between neighbours, for each microbatch; once a step the tied embedding up,
// its gradient down, and the sum of squares that clips gradients.
TEST_CASE("stages: what GPT-2 sends") {
  const Bindings dims = dims_of(kGpt);
  const Compilation c = staged("gpt2.ein", kGpt, 3, 4);
  auto made = partition(*c.graph, dims);
  const auto device = staged_device(std::get<Partitioned>(made), dims);
  REQUIRE(device);
  CHECK(device->microbatches == 4);
  CHECK(device->dims.at(Name("batch")) == 1);
  std::map<std::string, int> found;
  for (const StageSend& send : device->cut.sends) {
    const Type& type = device->whole.graph.type(send.value);
    const std::string how = send.of_microbatch() ? "each" : "once";
    ++found[fmt::format("{} {}->{} {}", how, send.from, send.to, device->bytes_of(send.value).str())];
    CHECK((type.rank() == 0 || type.rank() > 1));
  }
  const std::string activation = std::to_string(1 * 6 * 12 * 4), embedding = std::to_string(16 * 12 * 4);
  const std::map<std::string, int> wanted{{"each 0->1 " + activation, 1},
                                          {"each 1->2 " + activation, 1},
                                          {"each 2->1 " + activation, 1},
                                          {"each 1->0 " + activation, 1},
                                          {"once 0->2 " + embedding, 1},
                                          {"once 2->0 " + embedding, 1},
                                          {"once 0->1 4", 1},
                                          {"once 1->2 4", 1},
                                          {"once 2->0 4", 1},
                                          {"once 2->1 4", 1}};
  CHECK(found == wanted);
}

TEST_CASE("stages: the work of all is that of the program") {
  const Bindings dims = dims_of(kGpt);
  for (const int stages : {1, 2, 3, 6}) {
    const Compilation c = staged("gpt2.ein", kGpt, stages, 2);
    auto made = partition(*c.graph, dims);
    const auto device = staged_device(std::get<Partitioned>(made), dims);
    REQUIRE(device);
    Rational all(0);
    for (const Rational& flops : device->flops) all = all + flops;
    const Compilation one = staged("gpt2.ein", kGpt, 1, 1);
    auto whole = partition(*one.graph, dims);
    const double wanted = staged_device(std::get<Partitioned>(whole), dims)->flops[0].to_double();
    ReportOptions options;
    options.given = dims;
    const Report report = build_report(*c.graph, options);
    const double sums = 3 * report.parameter_count.value->to_double();  // the terms of two microbatches, and the mean
    CHECK(all.to_double() >= wanted + sums);
    // Every stage counts its steps and works out the learning rate.
    CHECK(all.to_double() < (wanted + sums) * 1.002);
  }
}

TEST_CASE("stages: first iterations") {
  std::vector<int64_t> found;
  for (int s = 0; s <= 4; ++s) found.push_back(first_iteration(s, 4, 10));
  CHECK(found == std::vector<int64_t>{0, 3, 5, 8, 10});
}

namespace {

std::vector<StageLink> neighbours(int stages, double seconds) {
  std::vector<StageLink> links;
  for (int s = 0; s + 1 < stages; ++s) links.push_back({s, s + 1, seconds}), links.push_back({s + 1, s, seconds});
  return links;
}

}  // namespace

// Narayanan et al. 2021, section 2.2: m microbatches on p equal stages take (m + p - 1) forwards and backwards.
TEST_CASE("pipeline timeline: the bubble of equal stages") {
  for (const int stages : {1, 2, 3, 8})
    for (const int64_t microbatches : {1, 2, 7, 8, 32}) {
      const std::vector<StageTimes> times(static_cast<size_t>(stages), StageTimes{2, 5, 0, 0});
      const PipelineTimeline line = pipeline_timeline(times, neighbours(stages, 0), microbatches);
      CHECK(line.end_s == 7.0 * static_cast<double>(microbatches + stages - 1));
      for (const double idle : line.idle_s) CHECK(idle == 7.0 * (stages - 1));
    }
}

// The longest path by hand: two stages, of which the second is slower.
TEST_CASE("pipeline timeline: sends and unequal stages") {
  const std::vector<StageTimes> times{{1, 2, 4, 3}, {2, 3, 1, 10}};
  // Stage 1 begins at 4 + 1 + 0.5 and is never without work: three times 5 until 20.5; then its update until 30.5.
  const PipelineTimeline line = pipeline_timeline(times, neighbours(2, 0.5), 3);
  CHECK(line.end_s == 30.5);
  CHECK(line.idle_s == std::vector<double>{30.5 - 7 - 9, 30.5 - 11 - 15});
  CHECK(microbatches_held(0, 4, 8) == 4);
  CHECK(microbatches_held(3, 4, 8) == 1);
  CHECK(microbatches_held(0, 4, 2) == 2);
}
