// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/reference_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/ir/tensor.h"
#include "runtime/base/training_names.h"

namespace einc {
namespace {

bool all_finite(const Tensor& tensor) {
  return std::ranges::all_of(tensor.reals, [](double x) { return std::isfinite(x); });
}

// A mask's -inf is none.
bool is_faulty(const Tensor& tensor) {
  return std::ranges::any_of(tensor.reals, [](double x) { return std::isnan(x) || x == std::numeric_limits<double>::infinity(); });
}

// As the target stores it: no NaN, and no infinity where the old element is finite.
bool may_store(const Tensor& value, const Tensor& old, DType dtype) {
  const Tensor next = from_host(to_host(convert(value, dtype == DType::real ? DType::f32 : dtype)));
  for (size_t i = 0; i < next.reals.size(); ++i)
    if (std::isnan(next.reals[i]) || (std::isinf(next.reals[i]) && std::isfinite(old.reals[i]))) return false;
  return true;
}

}  // namespace

ReferenceFault reference_fault(const Graph& graph, const InterpretResult& result, const TensorMap& params, const TensorMap& states) {
  const bool skips = has_state(graph, kLossScale), trains = graph.loss.valid() && !result.gradients.empty();
  if (trains && result.loss && !all_finite(*result.loss)) return {NonFinite::loss, graph.loss};
  for (const Update& gradient : graph.gradients) {
    const auto found = result.gradients.find(graph[gradient.target].as<ParamAttr>().path);
    if (!skips && found != result.gradients.end() && !all_finite(found->second)) return {NonFinite::gradient, gradient.value};
  }
  for (const Update& update : graph.updates) {
    const Node& target = graph[update.target];
    const bool is_param = target.op == Op::param;
    const Name path = is_param ? target.as<ParamAttr>().path : target.as<StateAttr>().path;
    const TensorMap& made = is_param ? result.params : result.states;
    const auto found = made.find(path);
    if (found == made.end() || !is_floating(target.type.dtype)) continue;
    if (path.str().ends_with(kGradientSum)) {
      if (!skips && !all_finite(found->second)) return {NonFinite::gradient, update.value};
    } else if (!may_store(found->second, (is_param ? params : states).at(path), target.type.dtype)) {
      return {NonFinite::state, update.value};
    }
  }
  return {};
}

std::string trace_fault(const Graph& graph, NodeId fault, const std::function<InterpretResult(std::vector<NodeId>)>& run) {
  for (;;) {
    const auto& operands = graph[fault].operands;
    const InterpretResult result = run({operands.begin(), operands.end()});
    size_t k = 0;
    while (k < operands.size() && !is_faulty(result.watched[k])) ++k;
    if (k == operands.size()) break;
    fault = operands[k];
  }
  const Origin& origin = graph[fault].origin;
  const std::string place =
      origin.location.line > 0 ? fmt::format(" ({}:{}:{})", origin.location.file.str(), origin.location.line, origin.location.column) : "";
  return fmt::format("'{}{}{}'{} is the first tensor that is not finite", origin.module.str(), origin.module.empty() ? "" : " ",
                     origin.label.empty() ? to_string(graph[fault].op) : origin.label.str(), place);
}

}  // namespace einc
