// SPDX-License-Identifier: Apache-2.0
// Every program of cases.json is compiled and run by the interpreter; types and values of its outputs are those that
// PyTorch gave when make_cases.py wrote the file. Values are compared without rounding, both as elaborated and simplified.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "compiler/elaborate/elaborate.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/verify.h"
#include "compiler/simplify/simplify.h"
#include "dsl/render.h"
#include "tests/support/packed_tensor.h"

namespace einc {
namespace {

using nlohmann::json;

bool close(double found, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(found);
  if (std::isinf(expected)) return found == expected;
  return std::fabs(found - expected) <= tolerance * std::max(1.0, std::fabs(expected));
}

// Empty when all agree, else the first difference.
std::string compare(const Tensor& found, const json& expected, double tolerance) {
  const Tensor wanted = tensor_of(expected);
  if (found.shape != wanted.shape) return "shapes differ";
  for (int64_t i = 0; i < wanted.count(); ++i)
    if (!close(found.real_at(i), wanted.real_at(i), tolerance))
      return fmt::format("{} is {}, not {}", describe_position(wanted.shape, i), found.real_at(i), wanted.real_at(i));
  return "";
}

void check_outputs(const Graph& graph, const json& test) {
  TensorMap inputs;
  for (const auto& [name, packed] : test["inputs"].items()) inputs.emplace(Name(name), tensor_of(packed));
  const InterpretResult result = interpret(graph, {}, inputs, {}, {});
  CHECK(result.outputs.size() == test["outputs"].size());
  for (const auto& [name, tensor] : result.outputs) {
    CAPTURE(name.str());
    const json& expected = test["outputs"][name.str()];
    CHECK(compare(tensor, expected, test["tolerance"].get<double>()) == "");
  }
}

std::string shown_type(const Graph& graph, NodeId node) {
  Type type = graph.type(node);
  const Bindings values = graph.dims.bind({}).values;
  for (Axis& axis : type.axes) axis.size = Poly(axis.size.evaluate_integer(values).value());
  return to_string(type);
}

void run_case(const json& test) {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto file = sources.add("case.ein", test["program"].get<std::string>(), diagnostics);
  REQUIRE(file);
  const auto graph = elaborate(sources, *file, {}, diagnostics);
  if (!graph) FAIL_CHECK(render_text(sources, diagnostics));
  if (!graph) return;
  CHECK(verify(*graph) == std::vector<std::string>{});
  for (const Output& output : graph->outputs) {
    CAPTURE(output.name.str());
    CHECK(shown_type(*graph, output.node) == test["outputs"][output.name.str()]["type"].get<std::string>());
  }
  check_outputs(*graph, test);
  const Graph simplified = simplify(*graph, Roots::training);
  CHECK(verify(simplified) == std::vector<std::string>{});
  check_outputs(simplified, test);
}

TEST_CASE("ops agree with PyTorch") {
  std::ifstream file(std::string(EINC_SOURCE_DIR) + "/tests/numeric/ops/cases.json");
  REQUIRE(file);
  const json tests = json::parse(file);
  for (const json& test : tests) {
    CAPTURE(test["name"].get<std::string>());
    REQUIRE_NOTHROW(run_case(test));
  }
  std::cout << tests.size() << " cases of ops\n";
}

}  // namespace
}  // namespace einc
