// SPDX-License-Identifier: Apache-2.0
// `if`, `training`: which branch makes the graph, what is visible behind it, what states and params become.
#include "compiler/cost/totals.h"
#include "compiler/ir/interpret.h"
#include "compiler/simplify/simplify.h"
#include "tests/unit/elaborate/support.h"

using namespace einc;

namespace {

const std::string kShapes = "dim n = 3, m = 2, layers = 4\ninput x: f64[n]\n";

struct Run {
  InterpretResult result;
  Graph graph;
};

// The program as it is and simplified for what is asked of it: the same values.
Run run(const std::string& program, RunMode mode, const TensorMap& params = {}, const TensorMap& states = {}) {
  const Compiled c(kShapes + program);
  CAPTURE(program);
  CAPTURE(c.said);
  REQUIRE(c.graph);
  const TensorMap inputs{{Name("x"), Tensor::of_reals({3}, {1, 2, 3})}};
  InterpretOptions options;
  options.mode = mode;
  InterpretResult written = interpret(*c.graph, {}, inputs, params, states, options);
  Graph graph = simplify(*c.graph, mode == RunMode::training ? Roots::training : Roots::inference);
  const InterpretResult simplified = interpret(graph, {}, inputs, params, states, options);
  REQUIRE(written.outputs.size() == simplified.outputs.size());
  for (size_t i = 0; i < written.outputs.size(); ++i) CHECK(written.outputs[i].second.reals == simplified.outputs[i].second.reals);
  for (const auto& [name, value] : simplified.states) CHECK(written.states.at(name).reals == value.reals);
  return {simplified, std::move(graph)};
}

double output(const std::string& program, RunMode mode) { return run(program, mode).result.outputs.at(0).second.real_at(0); }

struct Choice {
  const char* program;
  double training, inference;
};

}  // namespace

TEST_CASE("if: the branch that is taken") {
  const Choice rows[] = {
      {"y = 1\nif training { y = 2 }\noutput y", 2, 1},
      {"if training { y = 2.5 } else { y = 3.5 }\noutput y", 2.5, 3.5},
      {"if not training { y = 2 } else { y = 3 }\noutput y", 3, 2},
      {"if training and layers > 4 { y = 2 } else { y = 3 }\noutput y", 3, 3},
      {"if training or layers == 4 { y = 2 } else { y = 3 }\noutput y", 2, 2},
      {"if layers > 4 { y = 1 } else if training { y = 2 } else { y = 3 }\noutput y", 2, 3},
      {"if layers < 4 { y = 1 } else if layers <= 4 { y = 2 } else { y = 3 }\noutput y", 2, 2},
      {"if layers >= 2 * m and layers != 5 { y = 1 } else { y = 0 }\noutput y", 1, 1},
      {"y = 0\nfor i in layers { if i == layers - 1 { y = y + 100 } else if i > 0 { y = y + 10 } else { y = y + 1 } }\noutput y", 121, 121},
      {"y = 0\nfor i in layers { if training and i == 1 { y = y + 1 } }\noutput y", 1, 0},
      {"fn f(x, on) {\n  if on { x = 2 * x }\n  return x\n}\noutput y = sum(f(x, true)) - sum(f(x, not training))", 6, 0},
      {"fn f(x, p = 0.5) {\n  if p > 0.25 { x = x * p }\n  return x\n}\noutput y = sum(f(x)) + sum(f(x, 0.125))", 9, 9},
      {"if (training) { y = 2 } else { y = 3 }\noutput y", 2, 3},
      {"if (layers > 2) and not (training) { y = 2 } else { y = 3 }\noutput y", 3, 2},
      {"output y = where(training, 5, sum(x))", 5, 6},
      {"training = 7\noutput y = training", 7, 7},  // a value's name hides the word
      {"fn f(training: [n]) { return sum(training) }\noutput y = f(x)", 6, 6},
      // names that are words elsewhere
      {"if = 3\nelse = 4\ngradient = 5\noutput y = if * else + gradient", 17, 17},
      {"fn if(gradient) { return 2 * gradient }\nelse: [k] = if(x)\noutput y = sum(else)", 12, 12},
  };
  for (const Choice& row : rows) {
    CAPTURE(row.program);
    CHECK(output(row.program, RunMode::training) == row.training);
    CHECK(output(row.program, RunMode::inference) == row.inference);
  }
}

TEST_CASE("if: values, tuples, gradients and updates of the branch that is taken") {
  const std::string program =
      "state s: f64[n] ~ zeros\nstate runs: i32[] ~ zeros\nparam w: f64[n] ~ ones\nparam v: f64[n] ~ ones\n"
      "if training {\n  s <- s + x\n  runs <- runs + 1\n  a, b = (x * w, 1)\n} else {\n  s <- 10 * x\n  a, b = (x * v, 2)\n}\n"
      "output y = sum(a) * b\noutput u = sum(updated(s))\noutput r = updated(runs)\nloss = sum(a)\n"
      "output dw = sum(grad(loss, w))\noutput dv = sum(grad(loss, v))\nminimize loss using sgd(lr = 1)\n";
  const TensorMap params{{Name("w"), Tensor::of_reals({3}, {1, 1, 1})}, {Name("v"), Tensor::of_reals({3}, {2, 2, 2})}};
  const TensorMap states{{Name("s"), Tensor::of_reals({3}, {5, 5, 5})}, {Name("runs"), Tensor::of_ints({}, {3})}};
  const auto values = [](const Run& r) {
    std::vector<double> found;
    for (const auto& [name, tensor] : r.result.outputs) found.push_back(tensor.real_at(0));
    return found;
  };
  TensorMap with_step = states;
  with_step.emplace(Name("optimizer.step"), Tensor::of_ints({}, {0}, DType::i64));
  const Run training = run(program, RunMode::training, params, with_step);
  CHECK(values(training) == std::vector<double>{6, 21, 4, 6, 0});
  CHECK(training.result.states.at(Name("s")).reals == std::vector<double>{6, 7, 8});
  CHECK(training.result.states.at(Name("runs")).ints == std::vector<int64_t>{4});
  CHECK(training.result.params.at(Name("w")).reals == std::vector<double>{0, -1, -2});
  CHECK_FALSE(training.result.params.contains(Name("v")));  // the loss of a step does not depend on it
  const Run inference = run(program, RunMode::inference, params, states);
  CHECK(values(inference) == std::vector<double>{24, 60, 3, 0, 6});
  CHECK(inference.result.states.at(Name("s")).reals == std::vector<double>{10, 20, 30});
  CHECK_FALSE(inference.result.states.contains(Name("runs")));  // nothing updates it
}

TEST_CASE("if: params of both branches exist for both values of training, of other conditions in the branch taken") {
  const Compiled c(kShapes +
                   "if training { param a: [n] ~ ones\ny = sum(a) } else { param b: [n] ~ ones\ny = sum(b) }\n"
                   "if n > 5 { param c: [n] ~ ones\nz = sum(c) } else { param d: [n] ~ ones\nz = sum(d) }\noutput r = y + z\n");
  CAPTURE(c.said);
  REQUIRE(c.graph);
  for (const char* path : {"a", "b", "d"}) CHECK(c.param(path) != nullptr);
  CHECK(c.param("c") == nullptr);
  for (const Roots roots : {Roots::training, Roots::inference}) {
    size_t params = 0;
    for (const Node& node : simplify(*c.graph, roots).nodes) params += node.op == Op::param;
    CHECK(params == 3);
  }
  CHECK(c.graph->chosen_by == std::vector<Name>{Name("n")});
}

TEST_CASE("if: the branch that is not taken leaves nothing but its errors") {
  const std::string body = "  h = einsum(x, w, \"n, n k -> k\")\n  s <- x\n";
  const auto program = [&](const char* condition) {
    return kShapes + "state s: f64[n] ~ zeros\nparam w: f64[n k=2] ~ ones\ny = sum(normal(n))\n" + "if " + condition + " {\n" + body +
           "  for i in 3 { y = y + dropout(sum(h), 0.5) }\n}\noutput z = y + uniform(n)\n";
  };
  const Compiled taken(program("n > 2")), left(program("n > 3")),
      without(kShapes + "state s: f64[n] ~ zeros\nparam w: f64[n k=2] ~ ones\ny = sum(normal(n))\noutput z = y + uniform(n)\n");
  REQUIRE(left.graph);
  CHECK(taken.graph->size() > left.graph->size());
  CHECK(left.graph->size() == without.graph->size());
  CHECK(left.graph->updates.empty());
  CHECK(left.graph->loops.empty());
  const auto last_stream = [](const Compiled& c) {
    Name stream;
    for (const Node& node : c.graph->nodes)
      if (node.op == Op::random) stream = node.as<RandomAttr>().stream;
    return stream;
  };
  CHECK(last_stream(left) == last_stream(without));
  CHECK(Compiled(kShapes + "y = x\nif n > 5 { y = x + z }\noutput y\n").only(Code::unknown_name, "z"));
  // what only the condition keeps in bounds is no error
  CHECK(Compiled(kShapes + "y = sum(x)\nif n > 5 { y = sum(x[n = 0:5]) }\noutput y\n").graph);
  CHECK(Compiled(kShapes + "y = sum(x)\nfor i in n { if i > 1 { y = y + x[n = 4 - i] } }\noutput y\n").graph);
}

TEST_CASE("if training: what a step costs is the branch that it takes, and what inference costs the other") {
  const std::string head = "param w: f64[n k=5] ~ ones\nparam v: f64[n k=5] ~ ones\n",
                    end = "\noutput y\nminimize mean(y^2) using sgd(lr = 1)\n";
  const std::string a = "y = einsum(x, w, \"n, n k -> k\")", b = "y = sum(x * v, n) + 1";
  const auto cost = [&](const std::string& middle, Roots roots) {
    const Compiled c(kShapes + head + middle + end);
    CAPTURE(c.said);
    REQUIRE(c.graph);
    const Graph graph = simplify(*c.graph, roots);
    const FlopTotals totals = count_flops(graph, constant_nodes(graph));
    Poly all;
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer})
      for (const FlopClass kind : {FlopClass::contraction, FlopClass::elementwise, FlopClass::reduction, FlopClass::other})
        all += totals.of(phase, kind);
    return all.str();
  };
  const std::string both = "if training { " + a + " } else { " + b + " }";
  CHECK(cost(both, Roots::training) == cost(a, Roots::training));
  CHECK(cost(both, Roots::inference) == cost(b, Roots::inference));
  CHECK(cost(both, Roots::evaluation) == cost(b, Roots::evaluation));
}

TEST_CASE("if: what is visible behind it") {
  const auto fails = [](const std::string& program, Code code, std::string_view at) {
    const Compiled c(kShapes + program);
    CAPTURE(c.said);
    CHECK(c.only(code, at));
  };
  fails("if training { y = x }\noutput z = 2 * y", Code::unknown_name, "y");
  fails("if n > 2 { y = x }\noutput z = 2 * y", Code::unknown_name, "y");
  fails("if n > 9 { y = x }\noutput z = 2 * y", Code::unknown_name, "y");
  fails("if n > 2 { y = x } else { y = sum(x) }\noutput z = 2 * y", Code::unknown_name, "y");
  fails("if training { y = x } else { y = sum(x) }\noutput z = 2 * y", Code::unknown_name, "y");
  fails("y = x\nif training { y = sum(x) }\noutput z = 2 * y", Code::branch_types, "y");
  fails("y = x\nif training { y = cast(x, f32) }\noutput z = 2 * y", Code::branch_types, "y");
  fails("if training { param w: [n] ~ ones } else { param w: [n] ~ ones }\noutput x", Code::duplicate_path, "w");
  fails("state s: [n] ~ zeros\ns <- cast(x, f32)\nif training { s <- 2 * s }\noutput x", Code::updated_twice, "s <- 2 * s");
  fails("if training { output y = x }\noutput x", Code::misplaced_statement, "output");
  // a dtype that nobody wrote is no other one
  CHECK(
      Compiled(kShapes +
               "state s: [n] ~ zeros\ny = x\nif training { y = s }\nif training { z = s } else { z = cast(x, f32) }\noutput y\noutput z\n")
          .graph);
  CHECK(Compiled(kShapes + "y = x\nif n > 2 { y = sum(x) }\noutput y\n").output().type.rank() == 0);         // known: its type may change
  CHECK(Compiled(kShapes + "if n > 2 { t = x\ny = sum(t) } else { t = sum(x)\ny = t }\noutput y\n").graph);  // t is of no use later
  CHECK(Compiled(kShapes + "h = x\nif training {\n  for i in 3 { h = h * 2 }\n  h = h + 1\n}\noutput h\n").graph);
}
