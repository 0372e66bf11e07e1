// SPDX-License-Identifier: Apache-2.0
#include "tests/support/layer_cases.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/packed_tensor.h"

namespace einc {

TensorMap LayerCase::params_of(const Graph& graph) const {
  TensorMap all = initial_params(graph, {}, 1);
  for (auto& [path, value] : all)
    if (const auto given = params.find(path); given != params.end()) value.reals = given->second.reals;
  return all;
}

TensorMap LayerCase::states_of(const Graph& graph) const {
  TensorMap all = initial_states(graph, {}, 1);
  for (auto& [path, value] : all)
    if (const auto given = states.find(path); given != states.end()) value.reals = given->second.reals;
  return all;
}

std::string LayerCase::difference(const TensorMap& wanted_of, Name tensor, const Tensor& found) const {
  const auto entry = wanted_of.find(tensor);
  if (entry == wanted_of.end()) return "the case has no such tensor";
  const Tensor& wanted = entry->second;
  if (found.shape != wanted.shape) return "shapes differ";
  for (int64_t i = 0; i < wanted.count(); ++i) {
    const double f = found.real_at(i), w = wanted.real_at(i);
    if (!(std::fabs(f - w) <= tolerance * std::max(1.0, std::fabs(w))))
      return fmt::format("{} is {}, not {}", describe_position(wanted.shape, i), f, w);
  }
  return "";
}

std::vector<LayerCase> layer_cases() {
  std::ifstream file(EINC_SOURCE_DIR "/tests/numeric/layers/cases.json");
  REQUIRE(file);
  std::vector<LayerCase> cases;
  for (const nlohmann::json& packed : nlohmann::json::parse(file)) {
    LayerCase test;
    test.name = packed["name"].get<std::string>();
    test.program = packed["program"].get<std::string>();
    test.mode = packed["mode"] == "training" ? RunMode::training : RunMode::inference;
    test.tolerance = packed["tolerance"].get<double>();
    const auto take = [&](const char* group, TensorMap& into) {
      for (const auto& [name, tensor] : packed[group].items()) into.emplace(Name(name), tensor_of(tensor));
    };
    take("inputs", test.inputs);
    take("params", test.params);
    take("states", test.states);
    take("outputs", test.outputs);
    take("after", test.after);
    take("gradients", test.gradients);
    for (const auto& [name, tensor] : packed["outputs"].items()) test.axes.emplace(name, tensor["axes"].get<std::string>());
    cases.push_back(std::move(test));
  }
  return cases;
}

}  // namespace einc
