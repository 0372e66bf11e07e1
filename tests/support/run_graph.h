// SPDX-License-Identifier: Apache-2.0
// Compiles text or an example and runs it with made-up inputs, for tests that compare two ways to one number.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "compiler/elaborate/elaborate.h"
#include "compiler/ir/interpret.h"
#include "dsl/render.h"

namespace einc {

inline Graph compile_file(SourceMap& sources, std::optional<FileId> file, Diagnostics& diagnostics, const Bindings& dims) {
  std::optional<Graph> graph;
  if (file) graph = elaborate(sources, *file, {dims, {}}, diagnostics);
  REQUIRE_MESSAGE(graph.has_value(), render_text(sources, diagnostics));
  return std::move(*graph);
}

inline Graph compile_text(const std::string& text, const Bindings& dims = {}) {
  SourceMap sources;
  Diagnostics diagnostics;
  return compile_file(sources, sources.add("test.ein", text, diagnostics), diagnostics, dims);
}

// A file of the repository.
inline Graph compile_path(const std::string& path, const Bindings& dims = {}) {
  SourceMap sources;
  Diagnostics diagnostics;
  return compile_file(sources, sources.load(EINC_SOURCE_DIR "/" + path, diagnostics), diagnostics, dims);
}

inline Graph compile_example(const std::string& name, const Bindings& dims = {}) { return compile_path("examples/" + name, dims); }

// Integers are 0 or 1, reals lie between -1 and 1.
inline TensorMap some_inputs(const Graph& graph, const Bindings& given) {
  const Bindings dims = graph.dims.bind(given).values;
  TensorMap inputs;
  for (const Node& node : graph.nodes) {
    if (node.op != Op::input) continue;
    std::vector<int64_t> shape;
    for (const Axis& axis : node.type.axes) shape.push_back(axis.size.evaluate_integer(dims).value());
    Tensor t = Tensor::zeros(node.type.dtype, shape);
    for (size_t i = 0; i < t.ints.size(); ++i) t.ints[i] = static_cast<int64_t>(i / 2 % 2);
    for (size_t i = 0; i < t.reals.size(); ++i) t.reals[i] = std::sin(static_cast<double>(i) + 1);
    inputs[node.as<InputAttr>().name] = std::move(t);
  }
  return inputs;
}

inline InterpretResult run_graph(const Graph& graph, const Bindings& dims, const InterpretOptions& options = {}) {
  return interpret(graph, dims, some_inputs(graph, dims), initial_params(graph, dims, 1), initial_states(graph, dims, 1), options);
}

// Examples in sizes that the interpreter runs at once.
inline std::vector<std::pair<const char*, Bindings>> small_examples() {
  return {
      {"two_layer.ein", {{"batch", 3}, {"width", 4}, {"out", 5}}},
      {"mlp.ein", {{"batch", 3}, {"features", 5}, {"hidden", 4}, {"classes", 2}}},
      {"deep_linear.ein", {{"batch", 2}, {"width", 3}, {"layers", 3}}},
      {"attention.ein", {{"batch", 2}, {"seq", 3}, {"heads", 2}, {"head", 2}}},
      {"cnn.ein", {{"batch", 2}, {"height", 8}, {"width", 8}, {"c1", 2}, {"c2", 3}, {"classes", 4}}},
      {"gpt2.ein", {{"batch", 2}, {"seq", 3}, {"vocab", 7}, {"layers", 2}, {"heads", 2}, {"head", 2}}},
      {"llama.ein", {{"batch", 1}, {"seq", 3}, {"vocab", 5}, {"layers", 3}, {"embed", 8}, {"heads", 4}, {"kv_heads", 2}, {"ffn", 6}}},
      {"lora.ein", {{"batch", 2}, {"width", 3}, {"out", 4}, {"rank", 2}}},
      {"lstm.ein", {{"batch", 3}, {"time", 50}, {"hidden", 2}}},
      {"resnet.ein", {{"batch", 2}, {"height", 4}, {"width", 5}, {"c1", 2}, {"c2", 3}, {"c3", 2}, {"classes", 3}}},
      {"vit.ein", {{"batch", 2}, {"rows", 2}, {"cols", 1}, {"side", 2}, {"layers", 1}, {"heads", 2}, {"head", 2}, {"classes", 3}}},
      {"moe.ein", {{"batch", 12}, {"features", 3}, {"kinds", 3}, {"experts", 4}, {"hidden", 2}}},
      {"graph.ein", {{"nodes", 8}, {"edges", 12}, {"hidden", 4}, {"rounds", 1}}},
  };
}

}  // namespace einc
