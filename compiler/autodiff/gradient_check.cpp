#include "compiler/autodiff/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace einc {
namespace {

// The loss alone as a function of the params.
class Loss {
 public:
  Loss(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params, const TensorMap& states, uint64_t seed)
      : graph_(graph), dims_(dims), inputs_(inputs), params_(params), states_(states) {
    graph_.outputs.clear();
    graph_.updates.clear();
    graph_.gradients.clear();
    options_.seed = seed;
  }

  // (f(x - 2h) - 8 f(x - h) + 8 f(x + h) - f(x + 2h)) / 12h
  double slope(Name path, size_t element, double h) {
    return (at(path, element, -2 * h) - 8 * at(path, element, -h) + 8 * at(path, element, h) - at(path, element, 2 * h)) / (12 * h);
  }

 private:
  double at(Name path, size_t element, double offset) {
    double& value = params_.at(path).reals[element];
    const double before = value;
    value += offset;
    const InterpretResult result = interpret(graph_, dims_, inputs_, params_, states_, options_);
    value = before;
    return result.loss->real_at(0);
  }

  Graph graph_;
  const Bindings& dims_;
  const TensorMap& inputs_;
  TensorMap params_;
  const TensorMap& states_;
  InterpretOptions options_;
};

std::vector<size_t> choose(size_t count, int64_t limit, std::mt19937_64& random) {
  std::vector<size_t> all(count);
  std::iota(all.begin(), all.end(), size_t{0});
  const size_t kept = std::min(count, static_cast<size_t>(limit));
  for (size_t i = 0; i < kept; ++i) std::swap(all[i], all[i + random() % (count - i)]);
  all.resize(kept);
  return all;
}

GradientError compare(Loss& loss, Name path, const Tensor& symbolic, const Tensor& values, std::span<const size_t> elements,
                      double relative_step, double noise) {
  double largest = 0;
  for (double g : symbolic.reals) largest = std::max(largest, std::fabs(g));
  GradientError result{path};
  for (size_t i : elements) {
    const double h = relative_step * std::max(1.0, std::fabs(values.reals[i]));
    const double numeric = loss.slope(path, i, h), halved = loss.slope(path, i, h / 2), g = symbolic.reals[i];
    const double scale = std::max({std::fabs(g), std::fabs(numeric), 1e-4 * largest, noise});
    if (std::fabs(numeric - halved) > 1e-4 * scale) {
      ++result.skipped;
      continue;
    }
    const double error = std::fabs(g - numeric) / scale;
    if (++result.compared == 1 || !(error <= result.error)) {
      result.error = error;
      result.position = static_cast<int64_t>(i);
      result.symbolic = g;
      result.numeric = numeric;
    }
  }
  return result;
}

// The smallest axis that values of each integer node index; 2 where none is known.
std::vector<Poly> index_bounds(const Graph& graph, const Bindings& dims) {
  std::vector<Poly> bound(graph.size());
  const auto limit = [&](NodeId id, const Poly& size) {
    const auto old = bound[id.index].evaluate_integer(dims), now = size.evaluate_integer(dims);
    if (now && (!old || *old == 0 || *now < *old)) bound[id.index] = size;
  };
  for (uint32_t i = graph.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (node.op == Op::gather) limit(node.operands[1], graph.type(node.operands[0]).axis(node.as<GatherAttr>().axis).size);
    if (node.op == Op::scatter_add) limit(node.operands[1], node.type.axis(node.as<GatherAttr>().axis).size);
    if (node.op == Op::scatter_set) limit(node.operands[2], node.type.axis(node.as<GatherAttr>().axis).size);
    const bool passes = kind_of(node.op) == OpKind::view || node.op == Op::cast || node.op == Op::concat;
    if (passes && !bound[i].is_zero())
      for (NodeId operand : node.operands) limit(operand, bound[i]);
  }
  return bound;
}

}  // namespace

std::vector<GradientError> check_gradients(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params,
                                           const TensorMap& states, const GradientCheckOptions& options) {
  InterpretOptions run;
  run.seed = options.seed;
  const InterpretResult symbolic = interpret(graph, dims, inputs, params, states, run);
  Loss loss(graph, dims, inputs, params, states, options.seed);
  const double noise = 1e-8 + 1e-5 * std::fabs(symbolic.loss->real_at(0));  // what differences of the loss cannot tell from 0
  std::mt19937_64 random(options.seed);
  std::vector<GradientError> errors;
  for (const Update& gradient : graph.gradients) {
    const Name path = graph[gradient.target].as<ParamAttr>().path;
    const Tensor& values = params.at(path);
    const std::vector<size_t> elements = choose(values.reals.size(), options.elements, random);
    errors.push_back(compare(loss, path, symbolic.gradients.at(path), values, elements, options.relative_step, noise));
  }
  return errors;
}

TensorMap random_inputs(const Graph& graph, const Bindings& dims, uint64_t seed) {
  const Bindings values = graph.dims.bind(dims).values;
  const std::vector<Poly> bounds = index_bounds(graph, values);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  TensorMap inputs;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op != Op::input) continue;
    std::vector<int64_t> shape;
    for (const Axis& axis : node.type.axes) shape.push_back(axis.size.evaluate_integer(values).value_or(1));
    Tensor tensor = Tensor::zeros(node.type.dtype, std::move(shape));
    const int64_t bound = std::max<int64_t>(bounds[i].is_zero() ? 2 : bounds[i].evaluate_integer(values).value_or(2), 1);
    for (double& x : tensor.reals) x = normal(random);
    for (int64_t& x : tensor.ints)
      x = static_cast<int64_t>(random() % static_cast<uint64_t>(std::min<int64_t>(bound, node.type.dtype == DType::boolean ? 2 : bound)));
    inputs.emplace(node.as<InputAttr>().name, std::move(tensor));
  }
  return inputs;
}

}  // namespace einc
