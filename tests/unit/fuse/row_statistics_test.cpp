// SPDX-License-Identifier: Apache-2.0
// What attention's backward knows of a row: the graph with L and D has the same gradients to the digits of f64, and reads nothing else.
#include "compiler/fuse/row_statistics.h"

#include <doctest/doctest.h>

#include "compiler/fuse/form_graph.h"
#include "compiler/fuse/schedule_passes.h"
#include "tests/support/attention_programs.h"

using namespace einc;
using namespace einc::attention_programs;

namespace {

// The graph behind the pass, and its kernels of attention.
struct Rewritten {
  Graph before, graph;
  std::vector<GraphKernel> kernels;
};

Rewritten rewritten(const std::string& text, const Bindings& dims) {
  Rewritten r;
  r.before = finished(compile_text(text, dims));
  Scheduling options;
  options.observe = [&](std::string_view pass, const Forming& f, double) {
    if (pass == "row_statistics") r.graph = f.graph();
  };
  const FormedGraph formed = form_graph(r.before, dims, RunMode::training, options);
  for (const GraphKernel& k : formed.list.kernels)
    if (k.kernel->attention) r.kernels.push_back(k);
  return r;
}

// The graph in f64: roundings to f32 would hide what is wrong by less.
Graph in_f64(Graph graph) {
  for (Node& node : graph.nodes)
    if (node.type.dtype == DType::f32) node.type.dtype = DType::f64;
  return graph;
}

void check_gradients(const Rewritten& r, const Bindings& dims) {
  const Graph before = in_f64(r.before), after = in_f64(r.graph);
  const TensorMap inputs = inputs_of(before, dims), params = initial_params(before, dims, 1), states = initial_states(before, dims, 1);
  InterpretOptions options;
  options.mode = RunMode::training;
  const InterpretResult wanted = interpret(before, dims, inputs, params, states, options);
  const InterpretResult found = interpret(after, dims, inputs, params, states, options);
  CHECK(!wanted.gradients.empty());
  for (const auto& [name, value] : wanted.gradients) {
    CAPTURE(name.str());
    CHECK(difference(found.gradients.at(name), value, 1e-12) == "");
  }
}

int stored_folds(const Kernel& kernel) {
  int stored = 0;
  for (const AttentionStep& step : kernel.attention->steps)
    if (step.part == AttentionPart::fold) stored += static_cast<int>(step.stores.size());
  return stored;
}

// Whether some fold over keys is left in the backward, or a maximum or a sum is read.
bool reads_only_statistics(const Rewritten& r) {
  REQUIRE(r.kernels.size() == 2);
  const auto folds = [](const AttentionStep& step) { return step.part == AttentionPart::fold; };
  return stored_folds(*r.kernels[0].kernel) == 1 && std::ranges::none_of(r.kernels[1].kernel->attention->steps, folds);
}

void check(const std::string& text, const Bindings& dims) {
  CAPTURE(text);
  const Rewritten r = rewritten(text, dims);
  CHECK(reads_only_statistics(r));
  check_gradients(r, dims);
}

}  // namespace

TEST_CASE("row statistics: gradients stay, in any layout and under any mask") {
  for (const Layout& layout : kLayouts) check(program(layout, kCausal), sizes(5, 5, 3, 4));
  for (const char* mask : kMasks) check(program(kPlain, mask), sizes(6, 6, 3, 2));
}

TEST_CASE("row statistics: weights that are dropped are made again in the backward, and their sum stays a fold") {
  const std::string text = R"(
dim q = 6, k = 6, d = 3
param query: [q d] ~ normal(std = 1)
param keys: [k d] ~ normal(std = 1)
param values: [k d] ~ normal(std = 1)
w = dropout(softmax(einsum(query, keys, "q d, k d -> q k"), k), 0.3)
loss = sum(einsum(w, values, "q k, k d -> q d")^2)
minimize loss using sgd(lr = 0.1)
)";
  const Rewritten r = rewritten(text, {});
  REQUIRE(r.kernels.size() == 2);
  check_gradients(r, {});
  CHECK(stored_folds(*r.kernels[0].kernel) == 1);
}

TEST_CASE("row statistics: what the backward multiplies is not rounded before D is subtracted") {
  const Rewritten r = rewritten(program(kPlain, kCausal, "bf16"), sizes(6, 6, 3, 2));
  CHECK(reads_only_statistics(r));
  const auto is_subtraction = [&](const Node& node) {
    return node.op == Op::map && node.as<MapAttr>().fn == MapFn::sub && r.graph[node.operands[0]].op == Op::contract &&
           node.origin.phase == Phase::backward;
  };
  int found = 0;
  for (const Node& node : r.graph.nodes)
    if (is_subtraction(node) && ++found) CHECK(r.graph[node.operands[0]].type.dtype == DType::f32);
  CHECK(found == 1);
}

TEST_CASE("row statistics: scores that are stored, and a forward alone, stay as they are") {
  const std::string kept = program(kPlain, "s", "f32") + "output scores = s\n";
  const Graph graph = finished(compile_text(kept, sizes(6, 6, 3, 2)));
  size_t nodes = 0;
  Scheduling options;
  options.observe = [&](std::string_view pass, const Forming& f, double) {
    if (pass == "row_statistics") nodes = f.graph().size();
  };
  form_graph(graph, sizes(6, 6, 3, 2), RunMode::training, options);
  CHECK(nodes == graph.size());
  const Graph forward = finished(compile_text(program(kPlain, "s"), sizes(6, 6, 3, 2)), Roots::inference);
  form_graph(forward, sizes(6, 6, 3, 2), RunMode::inference, options);
  CHECK(nodes == forward.size());
}
