// The report's FLOPs against the counters that the interpreter increments in its innermost loops: for every example at small
// sizes, by phase and class. Nothing here knows the cost tables; only the report's JSON totals are read.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "compiler/driver/pipeline.h"
#include "compiler/ir/interpret.h"
#include "compiler/report/json.h"
#include "compiler/report/report.h"
#include "dsl/render.h"

using namespace einc;

namespace {

struct Example {
  const char* file;
  Bindings dims;
};

const std::vector<Example> kExamples{
    {"two_layer.ein", {{"batch", 3}, {"width", 4}, {"out", 2}}},
    {"deep_linear.ein", {{"batch", 2}, {"width", 3}, {"layers", 3}}},
    {"mlp.ein", {{"batch", 3}, {"features", 5}, {"hidden", 4}, {"classes", 3}}},
    {"attention.ein", {{"batch", 2}, {"seq", 5}, {"heads", 2}, {"head", 3}}},
    {"cnn.ein", {{"batch", 2}, {"height", 8}, {"width", 8}, {"c1", 2}, {"c2", 3}, {"classes", 4}}},
    {"lora.ein", {{"batch", 3}, {"width", 8}, {"out", 6}, {"rank", 2}}},
    {"nanogpt.ein", {{"batch", 2}, {"seq", 4}, {"vocab", 7}, {"layers", 2}, {"heads", 2}, {"head", 3}}},
    {"gpt2.ein", {{"batch", 2}, {"seq", 4}, {"vocab", 7}, {"layers", 3}, {"heads", 2}, {"head", 3}}},
    {"llama.ein", {{"batch", 2}, {"seq", 4}, {"vocab", 7}, {"layers", 2}, {"embed", 8}, {"heads", 4}, {"kv_heads", 2}, {"ffn", 6}}},
};

Tensor sample(const Node& input, const Bindings& values) {
  std::vector<int64_t> shape;
  for (const Axis& a : input.type.axes) shape.push_back(*a.size.evaluate_integer(values));
  Tensor t = Tensor::zeros(input.type.dtype, shape);
  for (size_t i = 0; i < t.reals.size(); ++i) t.reals[i] = 0.1 * static_cast<double>(i % 7) - 0.2;
  for (size_t i = 0; i < t.ints.size(); ++i) t.ints[i] = static_cast<int64_t>(i % 3);  // every example has three classes or tokens
  return t;
}

void check_phase(const nlohmann::json& flops, const char* name, const Counts& counted) {
  CAPTURE(name);
  CHECK(flops[name]["contraction"].get<uint64_t>() == counted.contraction);
  CHECK(flops[name]["elementwise"].get<uint64_t>() == counted.elementwise);
  CHECK(flops[name]["reduction"].get<uint64_t>() == counted.reduction);
  CHECK(flops[name]["other"].get<uint64_t>() == counted.other);
  CHECK(flops[name]["total"].get<uint64_t>() == counted.total());
}

}  // namespace

TEST_CASE("reported FLOPs are the FLOPs that run") {
  for (const Example& example : kExamples) {
    CAPTURE(example.file);
    PipelineOptions options;
    options.dims = example.dims;
    const Compilation c = compile_file(std::string(EINC_SOURCE_DIR) + "/examples/" + example.file, options);
    REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
    const Graph& graph = *c.graph;
    const Bindings values = graph.dims.bind(example.dims).values;
    TensorMap inputs;
    for (const Node& node : graph.nodes)
      if (node.op == Op::input) inputs[node.as<InputAttr>().name] = sample(node, values);
    const InterpretResult run =
        interpret(graph, example.dims, inputs, initial_params(graph, example.dims, 1), initial_states(graph, example.dims, 1));
    ReportOptions report_options;
    report_options.given = example.dims;
    const nlohmann::json flops = nlohmann::json::parse(render_json(build_report(graph, report_options), graph))["flops"];
    check_phase(flops, "forward", count_phase(graph, run, Phase::forward));
    check_phase(flops, "backward", count_phase(graph, run, Phase::backward));
    check_phase(flops, "optimizer", count_phase(graph, run, Phase::optimizer));
    Counts all;
    for (Phase phase : {Phase::forward, Phase::backward, Phase::optimizer}) all += count_phase(graph, run, phase);
    CHECK(flops["step"].get<uint64_t>() == all.total());
  }
}
