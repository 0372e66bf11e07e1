// SPDX-License-Identifier: Apache-2.0
// Whole models against PyTorch in float64: losses and every gradient. The values come from make_reference.py beside this
// file, which also says how tensors are filled.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/ir/interpret.h"
#include "compiler/pipeline/pipeline.h"
#include "dsl/render.h"

using namespace einc;
using nlohmann::json;

namespace {

const json& reference() {
  static const json data = [] {
    std::ifstream in(std::string(EINC_SOURCE_DIR) + "/tests/numeric/models/reference.json");
    return json::parse(in);
  }();
  return data;
}

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}

Tensor wave(std::vector<int64_t> shape, int t, double scale, double offset) {
  std::vector<double> values(static_cast<size_t>(product(shape)));
  for (size_t k = 0; k < values.size(); ++k) values[k] = scale * std::sin(1.3 * static_cast<double>(k) + t + 1) + offset;
  return Tensor::of_reals(std::move(shape), std::move(values));
}

Tensor ids(std::vector<int64_t> shape, int t, int64_t bound) {
  std::vector<int64_t> values(static_cast<size_t>(product(shape)));
  for (size_t k = 0; k < values.size(); ++k) values[k] = (7 * static_cast<int64_t>(k) + 3 * t) % bound;
  return Tensor::of_ints(std::move(shape), std::move(values));
}

double relative_error(double a, double b) { return std::abs(a - b) / std::max({1.0, std::abs(a), std::abs(b)}); }

}  // namespace

TEST_CASE("losses and gradients of whole models equal PyTorch's") {
  for (const json& model : reference()["models"]) {
    CAPTURE(model["file"].get<std::string>());
    PipelineOptions options;
    for (const auto& [name, value] : model["dims"].items()) options.dims[Name(name)] = value.get<int64_t>();
    const Compilation c = compile_file(std::string(EINC_SOURCE_DIR) + "/" + model["file"].get<std::string>(), options);
    REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
    TensorMap inputs, params;
    int t = 0;
    for (const json& tensor : model["tensors"]) {
      const auto shape = tensor["shape"].get<std::vector<int64_t>>();
      const std::string kind = tensor["kind"];
      const Name name(tensor["name"].get<std::string>());
      if (kind == "ids")
        inputs[name] = ids(shape, t, tensor["arg"].get<int64_t>());
      else
        (kind == "param" ? params : inputs)[name] = wave(shape, t, tensor["arg"][0], tensor["arg"][1]);
      ++t;
    }
    const InterpretResult result = interpret(*c.graph, options.dims, inputs, params, initial_states(*c.graph, options.dims, 0));
    REQUIRE(result.loss.has_value());
    CHECK(relative_error(result.loss->reals[0], model["loss"]) < 1e-12);
    CHECK(result.gradients.size() == model["gradients"].size());
    for (const auto& [path, expected] : model["gradients"].items()) {
      CAPTURE(path);
      REQUIRE(result.gradients.count(Name(path)) == 1);
      const Tensor& gradient = result.gradients.at(Name(path));
      REQUIRE(gradient.reals.size() == expected.size());
      double worst = 0;
      for (size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, relative_error(gradient.reals[i], expected[i]));
      CHECK(worst < 1e-11);
    }
  }
}
