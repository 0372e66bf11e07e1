// SPDX-License-Identifier: Apache-2.0
#include "tests/support/partition_check.h"

#include <fmt/format.h>

#include <map>
#include <random>

#include "compiler/ir/verify.h"
#include "tests/support/tensor_difference.h"

namespace einc {
namespace {

std::string tensor_difference(const Tensor& found, const Tensor& wanted, double tolerance) {
  if (found.shape != wanted.shape) return "the shape";
  double scale = 1e-30;
  for (int64_t i = 0; i < wanted.count(); ++i)
    if (std::isfinite(wanted.real_at(i))) scale = std::max(scale, std::fabs(wanted.real_at(i)));
  for (int64_t i = 0; i < wanted.count(); ++i) {
    const double f = found.real_at(i), w = wanted.real_at(i);
    if (f == w || (std::isnan(f) && std::isnan(w)) || std::fabs(f - w) <= tolerance * scale) continue;
    return fmt::format("{} is {}, not {}", describe_position(wanted.shape, i), f, w);
  }
  return "";
}

std::string map_difference(const char* what, const TensorMap& found, const TensorMap& wanted, double tolerance) {
  if (found.size() != wanted.size()) return fmt::format("{} {}s, not {}", found.size(), what, wanted.size());
  for (const auto& [name, value] : wanted)
    if (const std::string d = tensor_difference(found.at(name), value, tolerance); !d.empty())
      return fmt::format("{} {}: {}", what, name.str(), d);
  return "";
}

Name path_of(const Node& node) {
  if (node.op == Op::input) return node.as<InputAttr>().name;
  return node.op == Op::param ? node.as<ParamAttr>().path : node.as<StateAttr>().path;
}

}  // namespace

std::string result_difference(const InterpretResult& found, const InterpretResult& wanted, double tolerance) {
  for (size_t i = 0; i < wanted.outputs.size(); ++i)
    if (const std::string d = tensor_difference(found.outputs[i].second, wanted.outputs[i].second, tolerance); !d.empty())
      return fmt::format("output {}: {}", wanted.outputs[i].first.str(), d);
  if (wanted.loss)
    if (const std::string d = tensor_difference(*found.loss, *wanted.loss, tolerance); !d.empty()) return "loss: " + d;
  if (std::string d = map_difference("gradient", found.gradients, wanted.gradients, tolerance); !d.empty()) return d;
  if (std::string d = map_difference("param", found.params, wanted.params, tolerance); !d.empty()) return d;
  return map_difference("state", found.states, wanted.states, tolerance);
}

std::string partition_problem(const Graph& graph, const Partitioned& partitioned, const ProgramData& data, double tolerance) {
  if (const auto wrong = verify(partitioned.graph); !wrong.empty()) return "verify: " + wrong[0];
  collectives_of(partitioned);
  const auto run = [&](const Graph& g) { return interpret(g, data.dims, data.inputs, data.params, data.states, data.options); };
  return result_difference(run(partitioned.graph), run(graph), tolerance);
}

Mesh random_mesh(const Graph& graph, const Bindings& dims, uint64_t seed) {
  static constexpr std::array<std::array<int64_t, 3>, 11> kShapes{
      {{1, 0, 0}, {2, 0, 0}, {3, 0, 0}, {4, 0, 0}, {6, 0, 0}, {8, 0, 0}, {2, 2, 0}, {2, 3, 0}, {4, 2, 0}, {3, 2, 0}, {2, 2, 2}}};
  std::mt19937_64 random(seed);
  Mesh mesh;
  static constexpr const char* kNames[] = {"pod", "data", "model"};
  for (const int64_t size : kShapes[seed % kShapes.size()])
    if (size > 0) mesh.axes.push_back({Name(kNames[mesh.axes.size()]), Poly(size)});
  for (const Node& node : graph.nodes) {
    const bool state = node.op == Op::state && node.as<StateAttr>().role == StateRole::user;
    if (node.op != Op::input && node.op != Op::param && !state) continue;
    std::vector<AxisList> over(node.type.axes.size());
    for (int m = 0; m < static_cast<int>(mesh.axes.size()) && node.type.rank() > 0; ++m) {
      const size_t axis = random() % node.type.axes.size();
      if (random() % 4 == 0) continue;
      Poly parts = mesh.axes[static_cast<size_t>(m)].size;
      for (const int other : over[axis]) parts *= mesh.axes[static_cast<size_t>(other)].size;
      if (const auto size = node.type.axes[axis].size.evaluate_integer(dims); size && *size % *parts.as_integer() == 0)
        over[axis].push_back(m);
    }
    for (size_t axis = 0; axis < over.size(); ++axis)
      if (!over[axis].empty()) mesh.requests.push_back({node.op, path_of(node), static_cast<int>(axis), over[axis]});
  }
  const uint64_t zero = random() % 4;
  if (zero == 1) mesh.states = {0};
  if (zero == 2) mesh.gradients = {0};
  if (zero == 3) mesh.params = {0};
  return mesh;
}

std::string collective_counts(const Partitioned& partitioned, std::optional<Phase> phase) {
  std::map<std::string, int> counts;
  for (const Collective& c : collectives_of(partitioned)) {
    const Origin& origin = partitioned.graph[c.node].origin;
    if (phase && origin.phase != *phase) continue;
    ++counts[fmt::format("{} {}", to_string(c.kind), partitioned.graph.mesh.axes[static_cast<size_t>(c.mesh_axis)].name.str())];
  }
  std::string text;
  for (const auto& [name, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  return text;
}

}  // namespace einc
