// SPDX-License-Identifier: Apache-2.0
// jvp, vjp and gradient blocks against central differences, first and second order, in f64.
#include <cmath>

#include "compiler/autodiff/gradient_check.h"
#include "compiler/ir/interpret.h"
#include "compiler/simplify/simplify.h"
#include "tests/unit/elaborate/support.h"

using namespace einc;

namespace {

const std::string kTensors = "dim n = 3, m = 4\ninput x: f64[n]\ninput v: f64[n]\ninput w: f64[n m]\ninput r: f64[m]\n";

TensorMap inputs(double moved = 0) {
  const auto made = [](std::vector<int64_t> shape, size_t count, double phase) {
    std::vector<double> values;
    for (size_t i = 0; i < count; ++i) values.push_back(std::sin(1.3 * static_cast<double>(i) + phase));
    return Tensor::of_reals(std::move(shape), std::move(values));
  };
  TensorMap all{
      {Name("x"), made({3}, 3, 0.4)}, {Name("v"), made({3}, 3, 2)}, {Name("w"), made({3, 4}, 12, 1)}, {Name("r"), made({4}, 4, 3)}};
  for (size_t i = 0; i < 3; ++i) all.at(Name("x")).reals[i] += moved * all.at(Name("v")).reals[i];
  return all;
}

std::vector<double> values(const Graph& graph, double moved = 0) {
  return interpret(graph, {}, inputs(moved), {}, {}).outputs.at(0).second.reals;
}

Graph graph_of(const std::string& program) {
  const Compiled c(kTensors + program);
  CAPTURE(c.said);
  REQUIRE(c.graph);
  return simplify(*c.graph, Roots::training);
}

void check_close(const std::vector<double>& found, const std::vector<double>& wanted, double tolerance) {
  REQUIRE(found.size() == wanted.size());
  for (size_t i = 0; i < found.size(); ++i) CHECK(std::fabs(found[i] - wanted[i]) <= tolerance * std::max(1.0, std::fabs(wanted[i])));
}

constexpr const char* kFunctions[] = {
    "tanh(einsum(x, w, \"n, n m -> m\"))",
    "softmax(einsum(x, w, \"n, n m -> m\") * r, m)",
    "w * x^3",
    "logsumexp(w * x, n)",
    "cumsum(x, n) * exp(x)",
    "max(w * x, n) + prod(x)",
    "where(x > 0, x^2, sin(x))",
    "concat(x, x^2, n)[n = 1:5]",
    "einsum(x, \"(a + k) -> a\", k=2)",
    "einsum(x, r, \"a, k -> (a + 2*k)\")^2",
    "x[n = argmax(w, n)] * r",
    "rsqrt(sum(x^2) + 1)",
    "grad(sum(x^4 * v), x)",
};

}  // namespace

TEST_CASE("jvp: the change along a direction") {
  for (const char* f : kFunctions) {
    CAPTURE(f);
    const Graph value = graph_of(std::string("output y = ") + f), change = graph_of(std::string("output d = jvp(") + f + ", x, v)");
    constexpr double h = 1e-5;
    std::vector<double> ahead = values(value, h), behind = values(value, -h), numeric;
    for (size_t i = 0; i < ahead.size(); ++i) numeric.push_back((ahead[i] - behind[i]) / (2 * h));
    check_close(values(change), numeric, 1e-8);
    // and once more, as a function of x
    const Graph second = graph_of(std::string("output d = jvp(jvp(") + f + ", x, v), x, v)");
    ahead = values(change, h), behind = values(change, -h), numeric.clear();
    for (size_t i = 0; i < ahead.size(); ++i) numeric.push_back((ahead[i] - behind[i]) / (2 * h));
    check_close(values(second), numeric, 1e-7);
  }
}

TEST_CASE("vjp: the transpose of jvp, and the gradient of a product") {
  for (const char* f : kFunctions) {
    CAPTURE(f);
    const std::string y = std::string("y = ") + f + "\nc = cos(3 * stop_gradient(y))\n";
    check_close(values(graph_of(y + "output d = vjp(y, x, c)")), values(graph_of(y + "output d = grad(sum(y * c), x)")), 1e-12);
    check_close(values(graph_of(y + "output d = sum(vjp(y, x, c) * v)")), values(graph_of(y + "output d = sum(c * jvp(y, x, v))")), 1e-12);
    // differentiable in the cotangent, too
    check_close(values(graph_of(y + "u = sin(x)\noutput d = grad(sum(vjp(sum(y), x, sum(u)) * v), x)")),
                values(graph_of(y + "u = sin(x)\noutput d = grad(sum(grad(sum(y), x) * v) * sum(u), x)")), 1e-10);
  }
  check_close(values(graph_of("output d = vjp(x^2, x, 1)")), values(graph_of("output d = 2 * x")), 0);
  check_close(values(graph_of("output d = vjp(r, x, r)")), {0, 0, 0}, 0);
  // a fn of that name hides them
  check_close(values(graph_of("fn vjp(x) { return 3 * x }\nfn jvp(x) { return vjp(x) - x }\noutput d = jvp(x)")),
              values(graph_of("output d = 2 * x")), 1e-15);
  check_close(values(graph_of("output d = jvp(r, x, v)")), {0, 0, 0, 0}, 0);
}

TEST_CASE("jvp: costs what a forward with its changes costs, and no sweep back is left of it") {
  const Graph graph = graph_of("output d = jvp(einsum(x, w, \"n, n m -> m\"), x, v)");
  size_t contractions = 0;
  for (const Node& node : graph.nodes) contractions += node.op == Op::contract;
  CHECK(contractions == 1);
}

// ---- gradient blocks

namespace {

const std::string kLayer =
    "fn layer(x: [n], w: [n m]) {\n  h = tanh(einsum(x, w, \"n, n m -> m\"))\n  return h, h^2\n} gradient(dh, dq) {\n"
    "  g = (dh + 2 * h * dq) * (1 - h^2)\n  return einsum(g, w, \"m, n m -> n\"), einsum(x, g, \"n, m -> n m\")\n}\n";
const std::string kPlain = "fn layer(x: [n], w: [n m]) {\n  h = tanh(einsum(x, w, \"n, n m -> m\"))\n  return h, h^2\n}\n";

void check_same(const std::string& rest) {
  CAPTURE(rest);
  check_close(values(graph_of(kLayer + rest)), values(graph_of(kPlain + rest)), 1e-12);
}

}  // namespace

TEST_CASE("gradient blocks: the derivative that the rules give, if the block says the same") {
  // what a call returns are values of their own
  check_close(values(graph_of(kLayer + "a, b = layer(x, w)\noutput d = grad(sum(a * b^2), a)")),
              values(graph_of(kLayer + "a, b = layer(x, w)\noutput d = b^2")), 0);
  check_same("a, b = layer(x, w)\noutput d = grad(sum(a * b), x)");
  check_same("a, b = layer(x, w)\noutput d = grad(sum(a * b), w)");
  check_same("a, b = layer(x, w)\noutput d = grad(sum(b), w)");  // nothing reaches a
  check_same("a, b = layer(x, w)\noutput d = vjp(b, x, r)");
  check_same("a, b = layer(x, w)\noutput d = grad(sum(grad(sum(a^2), x)^2), x)");  // the block is differentiated
  check_same("a, b = layer(x, w)\noutput d = grad(sum(grad(sum(a * b), w)^2), x)");
  check_same("a, b = layer(x, w)\nc, e = layer(x * sum(b), w) as second\noutput d = grad(sum(c) + sum(e * a), x)");
}

TEST_CASE("gradient blocks: blocks that call fns with blocks, the same argument twice, params by name") {
  const std::string square = "fn square(x: [... k]) { return x^2 } gradient(dy) { return 2 * x * dy }\n";
  check_close(values(graph_of(square + "fn quart(x: [n]) { return square(x)^2 } gradient(dy) { return 4 * square(x) * x * dy }\n"
                                       "output d = grad(sum(grad(sum(quart(x)), x)), x)")),
              values(graph_of("output d = 12 * x^2")), 1e-12);
  check_close(values(graph_of(
                  "fn mul(a: [n], b: [n]) { return a * b } gradient(dy) { return dy * b, dy * a }\noutput d = grad(sum(mul(x, x)), x)")),
              values(graph_of("output d = 2 * x")), 1e-12);
  const std::string scaled =
      "fn scaled(x: [n]) {\n  param p: f64[n] ~ ones\n  return x * p\n} gradient(dy) { return dy * p, p = 7 * dy * x }\n";
  const Compiled c(kTensors + scaled + "loss = sum(scaled(x) * v)\noutput loss\nminimize loss using sgd(lr = 1)\n");
  CAPTURE(c.said);
  REQUIRE(c.graph);
  const TensorMap given = inputs();
  const InterpretResult result = interpret(*c.graph, {}, given, {{Name("scaled.p"), Tensor::of_reals({3}, {1, 1, 1})}},
                                           {{Name("optimizer.step"), Tensor::of_ints({}, {0}, DType::i64)}});
  const Tensor& gradient = result.gradients.at(Name("scaled.p"));
  for (size_t i = 0; i < 3; ++i)
    CHECK(gradient.reals[i] == doctest::Approx(7 * given.at(Name("x")).reals[i] * given.at(Name("v")).reals[i]));
}

TEST_CASE("gradient blocks: what the body hides is not differentiated") {
  // straight through a step that has no derivative of its own, and a gradient that is cut off
  check_close(
      values(graph_of("fn step(x: [n]) { return cast(x > 0, f64) } gradient(dy) { return dy }\noutput d = grad(sum(step(x) * v), x)")),
      values(graph_of("output d = v")), 0);
  check_close(values(graph_of("fn clipped(x: [n]) { return x } gradient(dy) { return min(max(dy, -0.5), 0.5) }\n"
                              "output d = grad(sum(clipped(x) * v), x)")),
              values(graph_of("output d = min(max(v, -0.5), 0.5)")), 0);
  check_close(values(graph_of("fn none(x: [n]) { return x^2 } gradient(dy) { return 0 }\noutput d = grad(sum(none(x)) + sum(x), x)")),
              {1, 1, 1}, 0);
}

// Within a scan a block is the iteration's own; `for` unrolls the same calls.
TEST_CASE("gradient blocks: in recurrences, as in the loop unrolled") {
  const std::string square = "fn square(x: [... k]) { return x^2 } gradient(dy) { return 3 * x * dy }\n";  // not the true derivative
  const std::string fns[] = {
      // straight through, arguments from outside and carried, two results, params by name, a block that calls one
      "fn f(h: [n], a: [n]) { return round(4 * h) / 4 + a } gradient(dy) { return dy, 5 * dy }\n",
      "fn f(h: [n], a: [n]) {\n  g = flip(h, n) * 1.5\n  return tanh(g) + a\n} gradient(dy) { return flip(2 * dy * a, n), dy * sin(h) }\n",
      "fn f(h: [n], a: [n]) {\n  param p: f64[n] ~ ones\n  return h * p * a\n} gradient(dy) { return dy * p, h * dy, p = 7 * dy * h }\n",
      square + "fn f(h: [n], a: [n]) { return sin(square(h)) + a } gradient(dy) { return square(h) * dy, dy }\n",
      "fn g(h: [n], a: [n]) { return h * a, h + a } gradient(dy, dz) { return dy * a + 2 * dz, dy * h - dz }\n"
      "fn f(h: [n], a: [n]) {\n  b, c = g(h, a)\n  return sin(b) * c\n}\n",
      "fn g(h: [n]) { return sin(h) } gradient(dy) { return 2 * dy }\nfn f(h: [n], a: [n]) { return grad(sum(g(h)^2), h) * 0.3 + a }\n",
      "fn g(h: [n]) { return sin(h) } gradient(dy) { return 2 * dy }\nfn f(h: [n], a: [n]) { return h * g(a) }\n",  // of no carry
  };
  const std::string uses[] = {"output d = grad(sum(h * v), x)\n", "output d = grad(sum(h * v), v)\n", "output d = grad(sum(h * v), r2)\n",
                              "output d = grad(sum(grad(sum(h * v), x) * v), x)\n", "output d = grad(sum(grad(sum(h^2), r2)), x)\n"};
  for (const std::string& fn : fns)
    for (const std::string& use : uses) {
      const auto program = [&](const std::string& loop) {
        return fn + "r2 = sum(w, m)\ny: [t=4 n] = stack(x, v, x * v, r2, t)\nh = x\n" + loop + " { h = 0.7 * f(h, y[t = i]) as f + r2 }\n" +
               use;
      };
      CAPTURE(program("LOOP"));
      const bool has_param = fn.find("param") != std::string::npos;
      const auto value = [&](const std::string& loop) {
        const Graph graph = graph_of(program(loop));
        return interpret(graph, {}, inputs(), has_param ? TensorMap{{Name("f.p"), Tensor::of_reals({3}, {1, 0.5, 2})}} : TensorMap{}, {})
            .outputs.at(0)
            .second.reals;
      };
      if (has_param) {
        check_close(value("scan i in t"), value("scan i in t, save every 3"), 0);
        continue;  // unrolled it is one of each iteration
      }
      check_close(value("scan i in t"), value("for i in 4"), 1e-11);
      check_close(value("scan i in t"), value("scan i in t, save every 3"), 0);
    }
}

TEST_CASE("gradient blocks: in recurrences, of a param that all iterations read") {
  const std::string scaled =
      "fn scaled(h: [n]) {\n  param p: f64[n] ~ ones\n  return h * p\n} gradient(dy) { return dy * p, p = 7 * dy * h }\n";
  const Compiled c(kTensors + scaled + "h = x\nscan i in steps=3 { h = scaled(h) }\nminimize sum(h * v) using sgd(lr = 1)\n");
  CAPTURE(c.said);
  REQUIRE(c.graph);
  const TensorMap given = inputs();
  const InterpretResult result = interpret(*c.graph, {}, given, {{Name("scaled.p"), Tensor::of_reals({3}, {2, 2, 2})}},
                                           {{Name("optimizer.step"), Tensor::of_ints({}, {0}, DType::i64)}});
  // h is x, 2x and 4x; dy is 4v, 2v and v
  for (size_t i = 0; i < 3; ++i)
    CHECK(result.gradients.at(Name("scaled.p")).reals[i] ==
          doctest::Approx(3 * 7 * 4 * given.at(Name("x")).reals[i] * given.at(Name("v")).reals[i]));
}

TEST_CASE("gradient blocks: in recurrences, none of which jvp goes through") {
  const Compiled c(kTensors +
                   "fn f(h: [n]) { return round(h) } gradient(dy) { return dy }\nh = x\nscan i in steps=3 { h = f(h) }\n"
                   "output d = jvp(h, x, v)\n");
  CHECK(c.said.find("E0") != std::string::npos);
}

// A scan forward and one back.
TEST_CASE("grad: calls by several values share what goes back through a recurrence") {
  const std::string loop = "h = x\nscan i in steps=5 { h = tanh(h * v + einsum(w, r, \"n m, m -> n\")) }\ny = sum(h^2)\n";
  const auto scans = [](const Graph& graph) { return std::ranges::count(graph.nodes, Op::scan, &Node::op); };
  const Graph both = graph_of(loop + "output a = grad(y, v)\noutput b = grad(y, x)\noutput c = grad(y, w)\n");
  CHECK(scans(both) == 2);
  const InterpretResult made = interpret(both, {}, inputs(), {}, {});
  const char* names[] = {"v", "x", "w"};
  for (size_t i = 0; i < 3; ++i) {
    const Graph alone = graph_of(loop + "output d = grad(y, " + names[i] + ")\n");
    CHECK(scans(alone) == 2);
    CHECK(values(alone) == made.outputs.at(i).second.reals);
  }
}

// What is asked of a recurrence's results does not keep their gradients from what it is made of.
TEST_CASE("grad: by the results of a recurrence, beside what it reads") {
  const std::string loop =
      "h = x\nscan i in steps=4 {\n  h = tanh(h * v + einsum(w, r, \"n m, m -> n\"))\n  collect z = h * v\n}\ny = sum(h^2) + sum(z^3)\n";
  const auto scans = [](const Graph& graph) { return std::ranges::count(graph.nodes, Op::scan, &Node::op); };
  const std::string names[] = {"h", "z", "v", "x", "w"};
  std::string all = loop;
  for (const std::string& name : names) all += "output d_" + name + " = grad(y, " + name + ")\n";
  const InterpretResult made = interpret(graph_of(all), {}, inputs(), {}, {});
  for (size_t i = 0; i < std::size(names); ++i) {
    CAPTURE(names[i]);
    const Graph alone = graph_of(loop + "output d = grad(y, " + names[i] + ")\n");
    CHECK(scans(alone) == (i < 2 ? 1 : 2));  // by a result: nothing goes back through the recurrence
    check_close(made.outputs.at(i).second.reals, values(alone), 1e-14);
  }
}

TEST_CASE("gradient blocks: gradcheck compares them with the fn") {
  for (const char* factor : {"2", "2.001"}) {
    const Compiled c(std::string("dim n = 3\nparam w: f64[n] ~ normal(std = 1)\nfn square(x: [n]) { return x^2 } gradient(dy) { return ") +
                     factor + " * x * dy }\nminimize sum(square(w) * iota(n)) using sgd(lr = 1)\n");
    REQUIRE(c.graph);
    const auto errors = check_gradients(*c.graph, {}, {}, {{Name("w"), Tensor::of_reals({3}, {0.3, -1.2, 2})}},
                                        {{Name("optimizer.step"), Tensor::of_ints({}, {0}, DType::i64)}}, {});
    CHECK((errors.at(0).error < 1e-8) == (factor == std::string("2")));
  }
}
