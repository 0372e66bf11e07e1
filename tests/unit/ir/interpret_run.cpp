// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "interpret_support.h"
#include "runtime/base/failure.h"
#include "runtime/base/random.h"

using namespace einc;

namespace {

std::string failure(Bench& bench, NodeId id, const Bindings& dims = {}) {
  try {
    bench.run(id, dims);
  } catch (const RuntimeFailure& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace

TEST_CASE("interpret: an index out of range names tensor, place, value, bound and source") {
  Bench bench;
  const NodeId table = bench.build.input("wte", {DType::real, {{"vocab", Poly(3)}, named("c", 1)}});
  bench.inputs["wte"] = Tensor::of_reals({3, 1}, {1, 2, 3});
  bench.build.origin.location = {"gpt2.ein", 57, 5, 9};
  const NodeId ids = bench.build.input("tokens", {DType::i32, {named("batch", 2), named("seq", 2)}});
  const NodeId out = bench.build.gather(table, ids, {0, {kNoAxis, 2}, {0, 1}}, {named("batch", 2), named("seq", 2), named("c", 1)});
  bench.inputs["tokens"] = Tensor::of_ints({2, 2}, {0, 2, 1, 3});
  CHECK(failure(bench, out) == "index out of range: 'tokens' at [1, 1] is 3, but axis 'vocab' of 'wte' has size 3 (gpt2.ein:57:5)");
  bench.inputs["tokens"] = Tensor::of_ints({2, 2}, {0, -1, 1, 0});
  CHECK(failure(bench, out) == "index out of range: 'tokens' at [0, 1] is -1, but axis 'vocab' of 'wte' has size 3 (gpt2.ein:57:5)");
  bench.inputs["tokens"] = Tensor::of_ints({2, 2}, {0, 0, 1, 2});
  CHECK(failure(bench, out) == "");
}

TEST_CASE("interpret: what is given must fit") {
  Bench bench;
  bench.graph.dims.declare_default("n", 4);
  bench.graph.dims.declare_free("f");
  bench.graph.dims.require({ConditionKind::divides, dim("n"), Poly(2), -1, "axis (h 2)"});
  const NodeId x = bench.build.input("x", {DType::i32, {{"n", dim("n")}}});
  CHECK(failure(bench, x) == "no value given for input 'x'");
  bench.inputs["x"] = Tensor::of_ints({3}, {1, 2, 3});
  CHECK(failure(bench, x) == "input 'x' has shape [3], but i32[n] is [4]: give -D n=3 to the program");
  bench.inputs["x"] = Tensor::of_reals({4}, {1, 2, 3, 4});
  CHECK(failure(bench, x) == "input 'x' is i32, but given as real");
  bench.inputs["x"] = Tensor::of_ints({4}, {1, 2, 3, 1LL << 40}, DType::i64);
  CHECK(failure(bench, x) == "input 'x' at [3] is 1099511627776, which i32 cannot hold");
  const NodeId y = bench.build.input("y", {DType::real, {{"n", dim("n")}}}), h = bench.build.input("h", {DType::f16, {{"n", dim("n")}}});
  bench.inputs["y"] = Tensor::of_reals({4}, {1, 2, -1e300, std::numeric_limits<double>::infinity()}, DType::f64);
  CHECK(failure(bench, y) == "input 'y' at [2] is -1e+300, which f32 cannot hold");
  bench.inputs["y"] = Tensor::of_reals({4}, {1, 1e-300, std::numeric_limits<double>::quiet_NaN(), -3e38}, DType::f64);
  CHECK(failure(bench, y) == "");
  bench.inputs["h"] = Tensor::of_ints({4}, {1, 2, 65504, 65520});
  CHECK(failure(bench, h) == "input 'h' at [3] is 65520, which f16 cannot hold");
  CHECK(failure(bench, x, {{"n", 3}}) != "");
  const NodeId free = bench.build.input("f", {DType::real, {{"f", dim("f")}}});
  CHECK(failure(bench, free) == "the size f of 'f' has no value: set its dims");
  CHECK(failure(bench, free, {{"f", INT64_MAX}}) == "'f' real[f] is too large to interpret");
  CHECK(failure(bench, free, {{"f", int64_t{1} << 39}}).find("interpreting this takes 4398.05 GB of memory, and there are") == 0);
}

TEST_CASE("interpret: the memory limit is of values alive together") {
  Bench bench;
  NodeId x = bench.reals("x", Reals(1000, 1));
  for (int i = 0; i < 5; ++i) x = bench.build.map(MapFn::neg, {x});
  bench.options.memory_limit = 16'000;
  CHECK(failure(bench, x) == "");
  bench.options.memory_limit = 15'999;
  CHECK(failure(bench, x) == "interpreting this takes 0.00 GB of memory, and there are 0.00 GB: set smaller dims");
}

TEST_CASE("interpret: training and inference, updates, gradients, loss") {
  Graph g;
  Builder b(g);
  const Type scalar{DType::real, {}};
  const NodeId w = b.param({"w", {InitKind::constant, InitForm::plain, {2.0}}, false}, scalar);
  const NodeId frozen = b.param({"c", {InitKind::ones, InitForm::root, {}}, true}, scalar);
  const NodeId cache = b.state({"cache", {}, StateRole::user}, scalar);
  const NodeId moment = b.state({"m", {InitKind::constant, InitForm::plain, {0.5}}, StateRole::moment}, {DType::i64, {}});
  const NodeId loss = b.map(MapFn::mul, {w, w});
  const NodeId next_moment = b.map(MapFn::add, {moment, b.constant(Poly(1), DType::i64)});
  g.loss = loss;
  g.outputs = {{"y", b.map(MapFn::add, {w, cache})}};
  g.updates = {{w, loss}, {cache, w}, {moment, next_moment}};
  g.gradients = {{w, b.map(MapFn::add, {w, w})}, {frozen, NodeId{}}};
  const TensorMap params = initial_params(g, {}, 0), states = initial_states(g, {}, 0);
  CHECK(params.at("w").reals == Reals{2});
  CHECK(states.at("m").ints == Ints{0});
  const InterpretResult trained = interpret(g, {}, {}, params, states);
  CHECK(trained.loss->reals == Reals{4});
  CHECK(trained.outputs[0].second.reals == Reals{2});
  CHECK(trained.params.at("w").reals == Reals{4});
  CHECK(trained.states.at("cache").reals == Reals{2});
  CHECK(trained.states.at("m").ints == Ints{1});
  CHECK(trained.gradients.at("w").reals == Reals{4});
  CHECK(trained.gradients.at("c").reals == Reals{0});
  InterpretOptions options;
  options.mode = RunMode::inference;
  const InterpretResult inferred = interpret(g, {}, {}, params, states, options);
  CHECK_FALSE(inferred.loss.has_value());
  CHECK(inferred.params.empty());
  CHECK(inferred.states.size() == 1);
  CHECK(inferred.gradients.empty());
  CHECK(inferred.counts[next_moment.index] == Counts{});
}

TEST_CASE("interpret: random numbers and dropout follow seed, step and stream") {
  Bench bench;
  const Type type{DType::real, {named("n", 100)}};
  const NodeId normal = bench.build.random({RandomKind::normal, "noise", 1}, type);
  const NodeId mask = bench.build.random({RandomKind::keep_mask, "drop", 0.75}, {DType::u8, type.axes});
  const NodeId x = bench.build.constant(Poly(3));
  const NodeId many = bench.build.broadcast(x, {}, type.axes);
  const NodeId dropped = bench.build.dropout(many, 0.25, "drop");
  bench.options.seed = 5;
  bench.options.step = 9;
  const Tensor drawn = bench.run(normal), kept = bench.run(mask), out = bench.run(dropped);
  for (size_t i = 0; i < 100; ++i) {
    CHECK(drawn.reals[i] == random_normal(random_key(5, "noise"), 9, i));
    CHECK(out.reals[i] == (kept.ints[i] == 1 ? 4 : 0));
  }
  bench.options.mode = RunMode::inference;
  CHECK(bench.run(dropped).reals == Reals(100, 3));
}

TEST_CASE("interpret: phases are summed, constants cost nothing") {
  Bench bench;
  const NodeId x = bench.reals("x", {1, 2, 3});
  const NodeId constant = bench.build.map(MapFn::exp, {bench.build.constant(Poly(1))});
  bench.build.origin.phase = Phase::backward;
  const NodeId y = bench.build.map(MapFn::mul, {x, constant});
  bench.run(y);
  CHECK(count_phase(bench.graph, bench.result, Phase::forward) == Counts{});
  CHECK(count_phase(bench.graph, bench.result, Phase::backward) == Counts{0, 3, 0, 0, 0});
}
