// SPDX-License-Identifier: Apache-2.0
// grad, minimize, optimizers, schedules, groups.
#include "compiler/elaborate/training.h"

#include "compiler/simplify/simplify.h"
#include "tests/unit/elaborate/support.h"

using namespace einc;

namespace {
const std::string kModel =
    "dim n = 4, k = 3\ninput x: f32[n]\nparam w: [n k] ~ normal(std = 0.1)\nparam b: [k] ~ zeros\n"
    "y = einsum(x, w, \"n, n k -> k\") + b\nloss = mean(y^2)\n";
int states(const Graph& graph, StateRole role) {
  int count = 0;
  for (const Node& node : graph.nodes) count += node.op == Op::state && node.as<StateAttr>().role == role;
  return count;
}
}  // namespace

TEST_CASE("globs") {
  CHECK(matches_glob("*", "h.0.attn.w"));
  CHECK(matches_glob("h.*.attn.*", "h.0.attn.w_qkv"));
  CHECK(!matches_glob("h.*.attn.*", "h.0.mlp.w"));
  CHECK(matches_glob("w?e", "wte"));
  CHECK(!matches_glob("", "w"));
}

TEST_CASE("every optimizer elaborates") {
  for (const auto& [name, moments] : std::initializer_list<std::pair<const char*, int>>{
           {"sgd", 0}, {"momentum", 2}, {"adagrad", 2}, {"rmsprop", 2}, {"adam", 4}, {"adamw", 4}}) {
    CAPTURE(name);
    const Compiled c(kModel + "minimize loss using " + name + "(lr = 0.1, weight_decay = 0.1, clip_norm = 1.0)");
    CHECK(c.said == "");
    REQUIRE(c.graph);
    const Graph used = simplify(*c.graph, Roots::training);
    CHECK(states(used, StateRole::moment) == moments);
    CHECK(c.graph->gradients.size() == 2);
    CHECK(c.graph->outputs.size() == 1);
    CHECK(c.graph->loss.valid());
    CHECK(states(used, StateRole::scalar) == (moments == 4 ? 1 : 0));  // adam counts steps
  }
}

TEST_CASE("schedules") {
  for (const char* lr : {"constant(0.1, warmup = 10)", "linear(0.1, total = 100)",
                         "cosine(6e-4, warmup = 2000, total = 600000, floor = 6e-5)", "0.5 * cosine(0.1, 100)"}) {
    CAPTURE(lr);
    CHECK(Compiled(kModel + "minimize loss using adamw(lr = " + lr + ")").said == "");
  }
  CHECK(Compiled(kModel + "minimize loss using adamw(lr = cosine(0.1))").has(Code::missing_argument));
}

TEST_CASE("settings in their ranges") {
  const auto fits = [](const std::string& optimizer) { return Compiled(kModel + "minimize loss using " + optimizer).said.empty(); };
  const auto refused = [](const std::string& optimizer, const std::string& at) {
    const Compiled c(kModel + "minimize loss using " + optimizer);
    CAPTURE(c.said);
    CHECK(c.only(Code::bad_setting, at));
  };
  for (const char* optimizer : {"sgd(lr = 0)", "momentum(momentum = 0)", "adam(betas = (0, 0))", "adamw(weight_decay = 0)",
                                "sgd(lr = linear(0.1, total = 1))", "sgd(lr = cosine(0.1, total = 10, warmup = 10))",
                                "sgd(lr = constant(0.1, warmup = 0))", "adam(eps = 1e-30)", "sgd(clip_norm = inf)"}) {
    CAPTURE(optimizer);
    CHECK(fits(optimizer));
  }
  refused("sgd(lr = inf)", "inf");
  refused("sgd(lr = -inf)", "-inf");
  refused("sgd(lr = nan)", "nan");
  refused("sgd(lr = 0 - 0.1)", "0 - 0.1");
  refused("sgd(lr = 1e300)", "1e300");
  refused("momentum(momentum = 1)", "1");
  refused("momentum(momentum = 2)", "2");
  refused("rmsprop(alpha = 1)", "1");
  refused("adam(betas = (0.9, 1))", "(0.9, 1)");
  refused("adamw(betas = (nan, 0.9))", "(nan, 0.9)");
  refused("adam(eps = 0)", "0");
  refused("adagrad(eps = 1e-60)", "1e-60");  // 0 in f32
  refused("adamw(weight_decay = -1)", "-1");
  refused("adamw(weight_decay = inf)", "inf");
  refused("sgd(clip_norm = 0)", "0");
  refused("sgd(clip_norm = nan)", "nan");
  refused("sgd(lr = cosine(0.1, total = 0))", "0");
  refused("sgd(lr = linear(0.1, total = -5))", "-5");
  refused("sgd(lr = cosine(0.1, total = 5, warmup = 6))", "6");
  refused("sgd(lr = cosine(0.1, warmup = 2 * n, total = n))", "2 * n");
  refused("sgd(lr = cosine(inf, total = 5))", "inf");
  refused("sgd(lr = cosine(0.1, total = 5, floor = -0.1))", "-0.1");
  // from outside
  for (const auto& [optimizer, rate] : std::initializer_list<std::pair<const char*, const char*>>{{"", "inf"},
                                                                                                  {"", "nan"},
                                                                                                  {"", "-1"},
                                                                                                  {"", "cosine(0.1, total = 0)"},
                                                                                                  {"momentum(momentum = 2)", ""},
                                                                                                  {"adam(eps = 0)", ""},
                                                                                                  {"sgd(clip_norm = -1)", ""},
                                                                                                  {"over \"*\" using sgd(lr = inf)", ""}}) {
    CAPTURE(optimizer);
    CAPTURE(rate);
    ElaborateOptions options;
    options.training.optimizer = optimizer;
    options.training.learning_rate = rate;
    const Compiled c(kModel + "minimize loss using sgd(lr = 0.1)", options);
    CHECK(c.diagnostics.error_count() == 1);
    CHECK(c.has(Code::bad_setting));
  }
}

TEST_CASE("groups by path") {
  const Compiled c(kModel + "minimize loss over \"b\" using sgd(lr = 0.1) over \"*\" using adam(lr = 0.1)");
  CHECK(c.said == "");
  REQUIRE(c.graph);
  CHECK(states(simplify(*c.graph, Roots::training), StateRole::moment) == 2);
  CHECK(Compiled(kModel + "minimize loss over \"*\" using sgd(lr = 0.1) over \"b\" using adam(lr = 0.1)").has(Code::group_without_params));
}

TEST_CASE("one's own optimizer") {
  const Compiled c("fn half(p: [...], g: [...], t, lr = 0.1) { return p - 0.5 * lr * g }\n" + kModel +
                   "minimize loss using half(lr = 0.2)");
  CHECK(c.said == "");
  CHECK(Compiled("fn half(x: [...]) { return x }\n" + kModel + "minimize loss using half(lr = 0.2)").only(Code::not_an_optimizer, "half"));
  CHECK(Compiled("fn bad(p: [...], g: [...], t) { return sum(p) }\n" + kModel + "minimize loss using bad()").has(Code::optimizer_result));
  CHECK(Compiled(kModel + "minimize loss using adamm(lr = 0.2)").only(Code::unknown_optimizer, "adamm"));
}

TEST_CASE("minimize: what is wrong") {
  CHECK(Compiled(kModel + "minimize y using sgd(lr = 0.1)").only(Code::loss_has_axes, "y"));
  CHECK(Compiled(kModel + "minimize loss using sgd(lr = 0.1)\nminimize loss using sgd(lr = 0.1)").has(Code::minimized_twice));
  CHECK(Compiled(kModel + "param u: [n] ~ zeros\nminimize loss using sgd(lr = 0.1)").has(Code::param_without_gradient));
  CHECK(Compiled("dim n = 4\ninput x: f32[n]\nloss = mean(x)\nminimize loss using sgd(lr = 0.1)").has(Code::nothing_to_train));
  CHECK(Compiled(kModel + "minimize argmax(y) using sgd(lr = 0.1)").has(Code::loss_not_floating));
}

TEST_CASE("frozen params have no gradient and no state") {
  const Compiled c(
      "dim n = 4\ninput x: f32[n]\nfrozen param w: [n] ~ ones\nparam v: [n] ~ ones\nloss = sum(x * w * v)\nminimize loss using adam(lr = "
      "0.1)");
  CHECK(c.said == "");
  REQUIRE(c.graph);
  CHECK(c.graph->gradients.size() == 1);
  CHECK(states(simplify(*c.graph, Roots::training), StateRole::moment) == 2);
}

TEST_CASE("grad") {
  const std::string head = "dim n = 4\ninput x: f32[n]\ny = x^3\nloss = sum(y)\n";
  CHECK(Compiled(head + "output g = grad(loss, x)").said == "");
  CHECK(Compiled(head + "g = grad(loss, x)\noutput h = grad(sum(g), x)").said == "");
  CHECK(Compiled(head + "output g = grad(loss, y)").said == "");
  CHECK(Compiled(head + "output g = grad(y, x)").only(Code::loss_has_axes, "y"));
  CHECK(Compiled(head + "input z: f32[n]\noutput g = grad(loss, z)").has(Code::zero_gradient));
  CHECK(Compiled(head + "input i: i32[n]\noutput g = grad(loss, i)").only(Code::grad_not_floating, "i"));
}

TEST_CASE("beside a param of f64 nothing of its update is f32 but the schedule itself") {
  const Compiled c(
      "dim n = 4, m = 3\ninput x: f32[n]\nparam w: f64[n m] ~ ones\nloss = sum((w * x)^2)\n"
      "minimize loss using adamw(lr = cosine(1e-3, warmup = 2, total = 10), weight_decay = 0.1)");
  REQUIRE(c.said == "");
  const Graph& graph = *c.graph;
  int narrow = 0;
  for (const Node& node : graph.nodes)
    for (const NodeId operand : node.operands)
      if (node.op == Op::map && node.origin.phase == Phase::optimizer && node.type.dtype == DType::f64 &&
          is_floating(graph[operand].type.dtype) && graph[operand].type.dtype != DType::f64)
        ++narrow;
  CHECK(narrow == 0);
  for (const Node& node : graph.nodes)
    if (node.op == Op::map && node.as<MapAttr>().fn == MapFn::pow) CHECK(node.type.dtype == DType::f64);
}
