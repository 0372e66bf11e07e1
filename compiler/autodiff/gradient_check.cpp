// SPDX-License-Identifier: Apache-2.0
#include "compiler/autodiff/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "compiler/ir/index_range.h"

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

  // (f(x - 2h) - 8 f(x - h) + 8 f(x + h) - f(x + 2h)) / 12h, for h and for h/2, which share f(x - h) and f(x + h).
  struct Slopes {
    double whole, halved;
  };
  Slopes slopes(Name path, size_t element, double h) {
    const double far = at(path, element, 2 * h) - at(path, element, -2 * h), middle = at(path, element, h) - at(path, element, -h),
                 near = at(path, element, h / 2) - at(path, element, -h / 2);
    return {(8 * middle - far) / (12 * h), (8 * near - middle) / (6 * h)};
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
                      double relative_step, double noise, const std::function<void()>& before_each) {
  double largest = 0;
  for (double g : symbolic.reals) largest = std::max(largest, std::fabs(g));
  GradientError result{path};
  for (size_t i : elements) {
    before_each();
    const double h = relative_step * std::max(1.0, std::fabs(values.reals[i]));
    const auto [numeric, halved] = loss.slopes(path, i, h);
    const double g = symbolic.reals[i];
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

// Of each param: as many as there are, at most `each`, and an equal share of what is left of `all`; what a small param leaves goes to
// those behind it.
std::vector<int64_t> shares(std::span<const int64_t> counts, int64_t each, int64_t all) {
  std::vector<int64_t> shares;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto left = static_cast<int64_t>(counts.size() - i);
    shares.push_back(std::min({counts[i], each, std::max<int64_t>(1, all / left)}));
    all -= shares.back();
  }
  return shares;
}

}  // namespace

std::vector<GradientError> check_gradients(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params,
                                           const TensorMap& states, const GradientCheckOptions& options) {
  InterpretOptions run;
  run.seed = options.seed;
  const InterpretResult symbolic = interpret(graph, dims, inputs, params, states, run);
  Loss loss(graph, dims, inputs, params, states, options.seed);
  // What differences of the loss cannot tell from 0: some roundings of numbers near 1 over a step of 1e-4 are 1e-11, which is no error.
  const double noise = 1e-7 + 1e-5 * std::fabs(symbolic.loss->real_at(0));
  std::mt19937_64 random(options.seed);
  std::vector<Name> paths;
  std::vector<int64_t> counts;
  for (const Update& gradient : graph.gradients) {
    paths.push_back(graph[gradient.target].as<ParamAttr>().path);
    counts.push_back(static_cast<int64_t>(params.at(paths.back()).reals.size()));
  }
  const std::vector<int64_t> share = shares(counts, options.elements, options.max_elements);
  const int64_t all = std::accumulate(share.begin(), share.end(), int64_t{0});
  int64_t done = 0;
  std::vector<GradientError> errors;
  for (size_t p = 0; p < paths.size(); ++p) {
    const auto before_each = [&] {
      if (options.progress) options.progress(done, all, paths[p]);
      ++done;
    };
    const Tensor& values = params.at(paths[p]);
    const std::vector<size_t> elements = choose(values.reals.size(), share[p], random);
    errors.push_back(compare(loss, paths[p], symbolic.gradients.at(paths[p]), values, elements, options.relative_step, noise, before_each));
    errors.back().elements = counts[p];
  }
  return errors;
}

TensorMap random_inputs(const Graph& graph, const Bindings& dims, uint64_t seed) {
  const Bindings values = graph.dims.bind(dims).values;
  const std::vector<IndexRange> ranges = index_ranges(graph, values);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  TensorMap inputs;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op != Op::input) continue;
    std::vector<int64_t> shape;
    for (const Axis& axis : node.type.axes) shape.push_back(axis.size.evaluate_integer(values).value_or(1));
    Tensor tensor = Tensor::zeros(node.type.dtype, std::move(shape));
    const DrawRange drawn = draw_range(ranges[i], node.type.dtype);
    for (double& x : tensor.reals) x = normal(random);
    for (int64_t& x : tensor.ints) x = drawn.low + static_cast<int64_t>(random() % static_cast<uint64_t>(drawn.count));
    inputs.emplace(node.as<InputAttr>().name, std::move(tensor));
  }
  return inputs;
}

}  // namespace einc
