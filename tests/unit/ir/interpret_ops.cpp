// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "interpret_support.h"

using namespace einc;

namespace {
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
}  // namespace

TEST_CASE("interpret reduce: every function, over some or all axes") {
  Bench bench;
  const NodeId x = bench.matrix("x", 2, 3, {1, -2, 3, 4, 0.5, -6});
  const auto reduce = [&](ReduceFn fn, AxisList axes) { return bench.run(bench.build.reduce(fn, x, axes)).reals; };
  CHECK(reduce(ReduceFn::sum, {0}) == Reals{5, -1.5, -3});
  CHECK(reduce(ReduceFn::sum, {1}) == Reals{2, -1.5});
  CHECK(reduce(ReduceFn::sum, {0, 1}) == Reals{0.5});
  CHECK(reduce(ReduceFn::max, {1}) == Reals{3, 4});
  CHECK(reduce(ReduceFn::min, {0}) == Reals{1, -2, -6});
  CHECK(reduce(ReduceFn::prod, {1}) == Reals{-6, -12});
  CHECK(reduce(ReduceFn::sum, {}) == bench.inputs.at("x").reals);
  CHECK(bench.result.counts.back().reduction == 6);
  const NodeId positive = bench.build.map(MapFn::greater, {x, bench.build.constant(Poly(0))});
  CHECK(bench.run(bench.build.reduce(ReduceFn::any, positive, {0})).ints == Ints{1, 1, 1});
  CHECK(bench.run(bench.build.reduce(ReduceFn::all, positive, {0})).ints == Ints{1, 0, 0});
}

TEST_CASE("interpret reduce: NaN propagates through max and min and wins arg_reduce") {
  Bench bench;
  const NodeId x = bench.matrix("x", 2, 3, {1, kNotANumber, 3, 3, 5, 5});
  const Tensor most = bench.run(bench.build.reduce(ReduceFn::max, x, {1}));
  CHECK(std::isnan(most.reals[0]));
  CHECK(most.reals[1] == 5);
  CHECK(std::isnan(bench.run(bench.build.reduce(ReduceFn::min, x, {1})).reals[0]));
  CHECK(bench.run(bench.build.arg_reduce(ReduceFn::max, x, 1)).ints == Ints{1, 1});
  CHECK(bench.run(bench.build.arg_reduce(ReduceFn::min, x, 0)).ints == Ints{0, 0, 0});
}

TEST_CASE("interpret cumulate and top_k_index") {
  Bench bench;
  const NodeId x = bench.matrix("x", 2, 3, {1, 2, 3, 4, 5, 5});
  CHECK(bench.run(bench.build.cumulate(ReduceFn::sum, x, 1, Direction::forward)).reals == Reals{1, 3, 6, 4, 9, 14});
  CHECK(bench.run(bench.build.cumulate(ReduceFn::sum, x, 1, Direction::reverse)).reals == Reals{6, 5, 3, 14, 10, 5});
  CHECK(bench.run(bench.build.cumulate(ReduceFn::max, x, 0, Direction::forward)).reals == Reals{1, 2, 3, 4, 5, 5});
  CHECK(bench.run(bench.build.top_k_index(x, 1, Poly(2))).ints == Ints{2, 1, 1, 2});
  CHECK(bench.result.counts.back().reduction == 6);
  CHECK(bench.run(bench.build.top_k_index(x, 0, Poly(1))).ints == Ints{1, 1, 1});
  CHECK(bench.run(bench.build.cumulate(ReduceFn::prod, x, 1, Direction::reverse)).reals == Reals{6, 6, 3, 100, 25, 5});
  CHECK(bench.run(bench.build.cumulate(ReduceFn::min, x, 1, Direction::forward)).reals == Reals{1, 1, 1, 4, 4, 4});
  CHECK(bench.run(bench.build.top_k_index(x, 1, Poly(3), ReduceFn::min)).ints == Ints{0, 1, 2, 0, 1, 2});
}

TEST_CASE("interpret shift: a ring along an axis") {
  Bench bench;
  const NodeId x = bench.matrix("x", 2, 3, {1, 2, 3, 4, 5, 6});
  CHECK(bench.run(bench.build.shift(x, 1, 1)).reals == Reals{2, 3, 1, 5, 6, 4});
  CHECK(bench.run(bench.build.shift(x, 1, 2)).reals == Reals{3, 1, 2, 6, 4, 5});
  CHECK(bench.run(bench.build.shift(x, 0, 1)).reals == Reals{4, 5, 6, 1, 2, 3});
  CHECK(bench.run(bench.build.shift(bench.build.cast(x, DType::i32), 1, 4)).ints == Ints{2, 3, 1, 5, 6, 4});
}

TEST_CASE("interpret top_k_index: NaN is the greatest in either order, and equal elements keep their order") {
  Bench bench;
  const NodeId x = bench.reals("x", {2, kNotANumber, -kInfinite, 2, kNotANumber, kInfinite});
  CHECK(bench.run(bench.build.top_k_index(x, 0, Poly(6))).ints == Ints{1, 4, 5, 0, 3, 2});
  CHECK(bench.run(bench.build.top_k_index(x, 0, Poly(6), ReduceFn::min)).ints == Ints{2, 0, 3, 5, 1, 4});
}

TEST_CASE("interpret cumulate: logarithms of running sums of exponentials") {
  Bench bench;
  const NodeId x = bench.reals("x", {-kInfinite, -kInfinite, 1000, 1000, kInfinite, 0});
  const Tensor y = bench.run(bench.build.cumulate(ReduceFn::logsumexp, x, 0, Direction::forward));
  CHECK(y.reals[1] == -kInfinite);
  CHECK(y.reals[2] == 1000);
  CHECK(y.reals[3] == doctest::Approx(1000 + std::log(2.0)).epsilon(1e-15));
  CHECK(y.reals[5] == kInfinite);
}

TEST_CASE("interpret scatters of extremes: places that nothing falls on hold the identity") {
  Bench bench;
  Builder& b = bench.build;
  const NodeId x = bench.reals("x", {3, 1, 2, kNotANumber});
  const NodeId half = b.constant(Poly(2), DType::i32);
  const NodeId ids = b.map(MapFn::floor_div, {b.iota(bench.graph.type(x).axis(0)), half});
  const GatherAttr attr{0, {kNoAxis}, {0}};
  const std::vector<Axis> axes{{"n", Poly(3)}};
  const Tensor most = bench.run(b.scatter_extreme(Op::scatter_max, x, ids, attr, axes));
  CHECK(most.reals[0] == 3);
  CHECK(std::isnan(most.reals[1]));
  CHECK(most.reals[2] == -kInfinite);
  CHECK(bench.result.counts.back().other == 4);
  const NodeId bytes = b.cast(ids, DType::u8);
  CHECK(bench.run(b.scatter_extreme(Op::scatter_min, bytes, ids, attr, axes)).ints == Ints{0, 1, 255});
  CHECK(bench.run(b.scatter_extreme(Op::scatter_max, bytes, ids, attr, axes)).ints == Ints{0, 1, 0});
}

TEST_CASE("interpret softmax and logsumexp: stable, with the counts of their parts") {
  Bench bench;
  const NodeId x = bench.matrix("x", 3, 2, {1000, 1000, 0, std::log(3.0), -kInfinite, -kInfinite});
  const NodeId soft = bench.build.softmax(x, 1);
  const Tensor y = bench.run(soft);
  CHECK(y.reals[0] == 0.5);
  CHECK(y.reals[3] == doctest::Approx(0.75));
  CHECK(std::isnan(y.reals[4]));
  CHECK(bench.counts(soft) == Counts{0, 18, 6, 12, 0});
  const NodeId lse = bench.build.logsumexp(x, {1});
  const Tensor z = bench.run(lse);
  CHECK(z.reals[0] == doctest::Approx(1000 + std::log(2.0)));
  CHECK(z.reals[1] == doctest::Approx(std::log(4.0)));
  CHECK(bench.counts(lse) == Counts{0, 18, 9, 12, 0});
}

TEST_CASE("interpret contract: batch, summed and free labels in any order") {
  Bench bench;
  const NodeId a = bench.reals("a", {named("b", 2), named("i", 2), named("k", 2)}, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const NodeId b = bench.reals("b", {named("k", 2), named("b", 2), named("j", 1)}, {2, 2, 1}, {1, 10, 100, 1000});
  const NodeId c = bench.build.contract(a, b, {1, 2, 3}, {3, 1, 0}, 3);  // j b i
  CHECK(bench.run(c).reals == Reals{201, 403, 6050, 8070});
  CHECK(bench.counts(c) == Counts{16, 0, 0, 0, 0});
  const NodeId i = bench.ints("i", {1, 2, 3});
  CHECK(bench.run(bench.build.contract(i, i, {0}, {0}, 0)).ints == Ints{14});
}

TEST_CASE("interpret views") {
  Bench bench;
  const NodeId x = bench.matrix("x", 2, 3, {1, 2, 3, 4, 5, 6});
  Builder& b = bench.build;
  CHECK(bench.run(b.permute(x, {1, 0})).reals == Reals{1, 4, 2, 5, 3, 6});
  CHECK(bench.run(b.broadcast(x, {0, 2}, {named("r", 2), named("k", 2), named("c", 3)})).reals ==
        Reals{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  const NodeId flat = b.merge(x, {2}, {named("rc", 6)});
  CHECK(bench.run(b.split(flat, {2}, {named("p", 3), named("q", 2)})).shape == Ints{3, 2});
  CHECK(bench.run(b.slice(x, 1, Poly(1), Poly(2))).reals == Reals{2, 3, 5, 6});
  CHECK(bench.run(b.slice(x, 1, Poly(2), Poly(2), -2)).reals == Reals{3, 1, 6, 4});
  const NodeId square = bench.matrix("square", 2, 2, {1, 2, 3, 4});
  CHECK(bench.run(b.diagonal(square, {0, 0})).reals == Reals{1, 4});
  CHECK(bench.run(b.stop_gradient(x)).reals == bench.inputs.at("x").reals);
}

TEST_CASE("interpret window and fold: adjoint, counted one per element added") {
  Bench bench;
  Builder& b = bench.build;
  const NodeId x = bench.matrix("x", 2, 5, {0, 1, 2, 3, 4, 10, 11, 12, 13, 14});
  const NodeId window = b.window(x, 1, {Poly(2), Poly(1)}, {named("y", 2), named("k", 2)});
  CHECK(bench.run(window).reals == Reals{0, 1, 2, 3, 10, 11, 12, 13});
  const NodeId overlapping = b.window(x, 1, {Poly(1), Poly(1)}, {named("y", 4), named("k", 2)});
  const NodeId fold = b.fold(overlapping, 1, {Poly(1), Poly(1)}, named("c", 5));
  CHECK(bench.run(fold).reals == Reals{0, 2, 4, 6, 4, 10, 22, 24, 26, 14});
  CHECK(bench.counts(fold).other == 16);
}

TEST_CASE("interpret pad and concat") {
  Bench bench;
  Builder& b = bench.build;
  const NodeId x = bench.matrix("x", 2, 2, {1, 2, 3, 4});
  CHECK(bench.run(b.pad(x, {Poly(1), Poly(0)}, {Poly(0), Poly(1)}, Poly(9))).reals == Reals{9, 9, 9, 1, 2, 9, 3, 4, 9});
  const NodeId i = bench.ints("i", {7});
  CHECK(bench.run(b.pad(i, {Poly(1)}, {Poly(2)}, -1.0)).ints == Ints{-1, 7, -1, -1});
  const NodeId parts[] = {x, x};
  CHECK(bench.run(b.concat(parts, 1)).reals == Reals{1, 2, 1, 2, 3, 4, 3, 4});
  CHECK(bench.run(b.concat(parts, 0)).reals == Reals{1, 2, 3, 4, 1, 2, 3, 4});
}

TEST_CASE("interpret cast") {
  Bench bench;
  Builder& b = bench.build;
  const NodeId x = bench.reals("x", {-1.9, 1.9, 300, kNotANumber, kInfinite, 0});
  CHECK(bench.run(b.cast(x, DType::i32)).ints == Ints{-1, 1, 300, 0, 2147483647, 0});
  CHECK(bench.run(b.cast(x, DType::u8)).ints == Ints{0, 1, 255, 0, 255, 0});
  CHECK(bench.run(b.cast(x, DType::boolean)).ints == Ints{1, 1, 1, 1, 1, 0});
  const NodeId i = bench.ints("i", {300, -1});
  CHECK(bench.run(b.cast(i, DType::u8)).ints == Ints{44, 255});
  CHECK(bench.run(b.cast(i, DType::f32)).reals == Reals{300, -1});
}

TEST_CASE("interpret gather and scatter") {
  Bench bench;
  Builder& b = bench.build;
  const NodeId table = bench.matrix("table", 3, 2, {1, 2, 3, 4, 5, 6});
  const NodeId ids = bench.ints("ids", {2, 0, 2});
  const GatherAttr rows{0, {kNoAxis, 1}, {0}};
  const NodeId picked = b.gather(table, ids, rows, {named("m", 3), named("c", 2)});
  CHECK(bench.run(picked).reals == Reals{5, 6, 1, 2, 5, 6});
  const NodeId added = b.scatter_add(picked, ids, rows, bench.graph.type(table).axes);
  CHECK(bench.run(added).reals == Reals{1, 2, 0, 0, 10, 12});
  CHECK(bench.counts(added).other == 6);
  const NodeId negated = b.map(MapFn::neg, {picked});
  CHECK(bench.run(b.scatter_set(table, negated, ids, rows)).reals == Reals{-1, -2, 3, 4, -5, -6});
  // Shared axis: out[r] = table[r, ids[r]].
  const NodeId columns = bench.ints("columns", {1, 0, 1});
  CHECK(bench.run(b.gather(table, columns, {1, {0, kNoAxis}, {0}}, {named("r", 3)})).reals == Reals{2, 3, 6});
}

TEST_CASE("interpret iota, constants and dims") {
  Bench bench;
  bench.graph.dims.declare_default("n", 3);
  const NodeId iota = bench.build.iota({"n", dim("n")});
  CHECK(bench.run(iota).ints == Ints{0, 1, 2});
  CHECK(bench.run(iota, {{"n", 2}}).ints == Ints{0, 1});
  CHECK(bench.run(bench.build.constant(divide(Poly(1), dim("n")))).reals == Reals{1.0 / 3});
  CHECK(bench.run(bench.build.constant(Poly(4), DType::i32)).ints == Ints{4});
}
