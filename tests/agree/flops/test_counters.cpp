// FLOP formulas against the interpreter: its counters are incremented in its innermost loops and share nothing with the
// cost tables. Whole programs, forward, backward and optimizer, at small dims.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "compiler/cost/totals.h"
#include "compiler/elaborate/elaborate.h"
#include "compiler/ir/interpret.h"
#include "compiler/simplify/simplify.h"

using namespace einc;

namespace {

struct Program {
  const char* file;
  Bindings dims;
};

Graph compiled(const Program& program) {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto file = sources.load(std::string(EINC_SOURCE_DIR "/") + program.file, diagnostics);
  REQUIRE(file);
  auto graph = elaborate(sources, *file, {.dims = program.dims, .precision = std::nullopt}, diagnostics);
  REQUIRE_MESSAGE(graph, program.file);
  return simplify(std::move(*graph), Roots::training);
}

// Ones for floating inputs, zeros (a valid position anywhere) for others.
TensorMap inputs_of(const Graph& graph, const Bindings& dims) {
  TensorMap inputs;
  for (const Node& node : graph.nodes) {
    if (node.op != Op::input) continue;
    std::vector<int64_t> shape;
    for (const Axis& axis : node.type.axes) shape.push_back(*axis.size.evaluate_integer(dims));
    Tensor tensor = Tensor::zeros(node.type.dtype, shape);
    for (double& x : tensor.reals) x = 1;
    inputs.emplace(node.as<InputAttr>().name, std::move(tensor));
  }
  return inputs;
}

uint64_t at(const Poly& formula, const Bindings& dims) { return static_cast<uint64_t>(*formula.evaluate_integer(dims)); }

void check_counts(const Program& program) {
  CAPTURE(program.file);
  const Graph graph = compiled(program);
  const Bindings dims = graph.dims.bind(program.dims).values;
  const InterpretResult run = interpret(graph, program.dims, inputs_of(graph, dims), initial_params(graph, program.dims, 1), initial_states(graph, program.dims, 1));
  const FlopTotals totals = count_flops(graph, constant_nodes(graph));
  for (Phase phase : {Phase::forward, Phase::backward, Phase::optimizer}) {
    CAPTURE(to_string(phase));
    const Counts counted = count_phase(graph, run, phase);
    CHECK(at(totals.of(phase, FlopClass::contraction), dims) == counted.contraction);
    CHECK(at(totals.of(phase, FlopClass::elementwise), dims) == counted.elementwise);
    CHECK(at(totals.transcendental[static_cast<size_t>(phase)], dims) == counted.transcendental);
    CHECK(at(totals.of(phase, FlopClass::reduction), dims) == counted.reduction);
    CHECK(at(totals.of(phase, FlopClass::other), dims) == counted.other);
  }
}

}  // namespace

TEST_CASE("formulas equal counters") {
  const std::string models = "tests/numeric/accounting/models/";
  for (const char* name : {"a_minus_b", "bmm", "bsh", "chain_rule", "conv1d", "conv2d", "deep_linear", "elementwise", "embedding", "expand_bmm", "five_axes",
                           "five_products", "outer", "row_sum", "shared_weight", "twice", "x_plus_x"}) {
    const std::string file = models + name + ".ein";
    check_counts({file.c_str(), {}});
  }
  for (const char* name : {"two_layer", "two_layer_dx", "two_layer_frozen", "one_layer"}) {
    const std::string file = models + name + ".ein";
    check_counts({file.c_str(), {{"B", 6}, {"D", 4}, {"K", 3}}});
  }
  check_counts({"tests/numeric/accounting/models/sdpa.ein", {{"b", 2}, {"h", 2}, {"t", 3}, {"d", 4}}});
}

TEST_CASE("formulas equal counters: whole models, with an optimizer") {
  check_counts({"examples/gpt2.ein", {{"batch", 2}, {"seq", 5}, {"vocab", 7}, {"layers", 3}, {"heads", 2}, {"head", 3}}});
  check_counts({"examples/llama.ein", {{"batch", 1}, {"seq", 4}, {"vocab", 6}, {"layers", 2}, {"embed", 8}, {"heads", 4}, {"kv_heads", 2}, {"ffn", 5}}});
}
