// SPDX-License-Identifier: Apache-2.0
#include "tests/support/log_sums.h"

#include <fmt/format.h>

#include <limits>

#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"

namespace einc {
namespace {

Graph finished(const std::string& text) {
  return assign_precision(simplify(expand(compile_text(text), Roots::training), Roots::training), Policy::f32);
}

TensorMap given(std::vector<double> x, std::vector<int64_t> shape) {
  Tensor logits = Tensor::of_reals(std::move(shape), std::move(x));
  return {{Name("x"), convert(logits, DType::f32)}};
}

// -log softmax of each element and softmax itself, from mpmath with 60 digits:
//   lse = log(sum(exp(mpf(v)) for v in row));  [lse - v for v in row];  [exp(v - lse) for v in row]
struct Row {
  std::vector<double> x, losses, weights;
};
const std::vector<Row>& rows() {
  static const std::vector<Row> kRows{
      {{10000, 9990}, {4.5398899216864646769e-5, 10.000045398899216865}, {0.99995460213129756561, 4.5397868702434394505e-5}},
      {{20, 8}, {6.1441934777328054346e-6, 12.000006144193477733}, {0.99999385582539778528, 6.1441746022147178256e-6}},
      {{60, 50}, {4.5398899216864646769e-5, 10.000045398899216865}, {0.99995460213129756561, 4.5397868702434394505e-5}},
      {{30, 0}, {9.3576229688397367794e-14, 30.000000000000093576}, {0.99999999999990642377, 9.3576229688392989538e-14}},
      {{0, 80}, {80.0, 1.8048513878454151723e-35}, {1.8048513878454151723e-35, 1.0}},
      {{5, 5}, {0.69314718055994530942, 0.69314718055994530942}, {0.5, 0.5}},
      {{7, 7, -60}, {0.69314718055994530942, 0.69314718055994530942, 67.693147180559945309}, {0.5, 0.5, 3.9924521228434894042e-30}},
      {{-10000, -10003}, {0.048587351573742058759, 3.0485873515737420588}, {0.95257412682243321912, 0.047425873177566780879}},
      {{3, -2, 1},
       {0.13284523372757555377, 5.1328452337275755538, 2.1328452337275755538},
       {0.87560059506308763732, 0.0058997504019027806023, 0.11849965453500958207}}};
  return kRows;
}

}  // namespace

void check_small_losses(const Backend& backend, std::span<const Scheduling> ways, double tolerance) {
  for (const Row& row : rows()) {
    const auto size = static_cast<int64_t>(row.x.size());
    const Graph graph = finished(fmt::format(R"(
dim n = {}
input x: f32[n]
input t: i32[]
output all = log_softmax(x, n)
output one = cross_entropy(x, t, n)
output slope = grad(cross_entropy(x, t, n), x)
)",
                                             size));
    for (int64_t t = 0; t < size; ++t) {
      TensorMap inputs = given(row.x, {size});
      inputs.emplace(Name("t"), Tensor::of_ints({}, {t}, DType::i32));
      for (const Scheduling& scheduling : ways) {
        const CpuRun run = backend(graph, {}, inputs, {}, {}, scheduling);
        const auto close = [&](double found, double wanted, double scale) {
          CAPTURE(row.x.front());
          CAPTURE(found);
          CAPTURE(wanted);
          CHECK(std::fabs(found - wanted) <= tolerance * scale);
        };
        const auto at = [](const std::vector<double>& v, int64_t i) { return v[static_cast<size_t>(i)]; };
        close(run.outputs[1].second.real_at(0), at(row.losses, t), at(row.losses, t));
        for (int64_t i = 0; i < size; ++i) {
          close(run.outputs[0].second.real_at(i), -at(row.losses, i), at(row.losses, i));
          const double weight = at(row.weights, i);  // a gradient at the target is this less 1
          close(run.outputs[2].second.real_at(i), i == t ? weight - 1 : weight, i == t ? 1 : 20 * weight);
        }
      }
    }
  }
}

void check_infinite_rows(const Backend& backend, std::span<const Scheduling> ways) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const Graph written = compile_text("dim r = 4, n = 3\ninput x: f32[r n]\noutput y = logsumexp(x, n)\n");
  const Graph graph = finished("dim r = 4, n = 3\ninput x: f32[r n]\noutput y = logsumexp(x, n)\n");
  const TensorMap inputs =
      given({-kInfinite, -kInfinite, -kInfinite, kInfinite, 1, -kInfinite, 0, -kInfinite, 0, kInfinite, kInfinite, 0}, {4, 3});
  const std::vector<double> wanted{-kInfinite, kInfinite, std::log(2.0), kInfinite};
  const auto check = [&](const Tensor& found) {
    for (size_t i = 0; i < wanted.size(); ++i) CHECK((found.reals[i] == wanted[i] || std::fabs(found.reals[i] - wanted[i]) < 1e-6));
  };
  check(interpret(written, {}, inputs, {}, {}).outputs[0].second);
  for (const Scheduling& scheduling : ways) check(backend(graph, {}, inputs, {}, {}, scheduling).outputs[0].second);
  const Graph constant = finished("dim n = 3\noutput y = logsumexp(full(n, -inf), n)\noutput z = logsumexp(full(n, inf), n)\n");
  for (const Scheduling& scheduling : ways) {
    const CpuRun run = backend(constant, {}, {}, {}, {}, scheduling);
    CHECK(run.outputs[0].second.reals[0] == -kInfinite);
    CHECK(run.outputs[1].second.reals[0] == kInfinite);
  }
}

void check_targets(const Backend& backend, std::span<const Scheduling> ways) {
  // Of a row's targets each is the maximum of some rows, by far or by little, and not of others.
  const char* const entropy = "cross_entropy(logits, t, c)";
  const std::pair<const char*, const char*> rows[] = {{"i32[b s]", entropy},     {"i32[s b]", entropy},
                                                      {"i32[s]", entropy},       {"i32[]", entropy},
                                                      {"i32[b s k=3]", entropy}, {"i32[s k=3]", "-log_softmax(logits, c)[c = t]"}};
  for (const auto& [targets, losses] : rows) {
    CAPTURE(targets);
    const std::string text = fmt::format(R"(
dim b = 3, s = 5, c = 139
input x: f32[b c s]
input t: {}
logits = x * 30
each = {}
loss = mean(each^2)
output each
output slope = grad(loss, x)
output curve = grad(sum(grad(loss, x)^2), x)
)",
                                         targets, losses);
    const Graph written = compile_text(text), graph = finished(text);
    TensorMap inputs = some_inputs(written, {});
    for (size_t i = 0; i < inputs.at(Name("t")).ints.size(); ++i) inputs.at(Name("t")).ints[i] = static_cast<int64_t>(i * 11 % 139);
    const InterpretResult wanted = interpret(written, {}, inputs, {}, {});
    for (const Scheduling& scheduling : ways) {
      const CpuRun run = backend(graph, {}, inputs, {}, {}, scheduling);
      for (size_t k = 0; k < wanted.outputs.size(); ++k) {
        const Tensor &found = run.outputs[k].second, &want = wanted.outputs[k].second;
        double largest = 0;
        for (const double x : want.reals) largest = std::max(largest, std::fabs(x));
        REQUIRE(found.shape == want.shape);
        for (int64_t i = 0; i < want.count(); ++i) {
          CAPTURE(k);
          CHECK(std::fabs(found.real_at(i) - want.real_at(i)) <= 2e-5 * (k == 0 ? std::fabs(want.real_at(i)) : largest));
        }
      }
    }
  }
}

}  // namespace einc
