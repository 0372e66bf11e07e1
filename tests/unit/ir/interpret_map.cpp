// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "interpret_support.h"
#include "runtime/base/failure.h"

using namespace einc;

namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
}  // namespace

TEST_CASE("interpret map: unary functions agree with PyTorch in f64") {
  // torch at -2.5 -0.5 0 0.3 1.7; log, log1p, sqrt, rsqrt and lgamma at |x| + 0.25; asin, acos and erfinv at x / 4
  const std::pair<MapFn, Reals> table[] = {
      {MapFn::exp, {0.0820849986238988, 0.6065306597126334, 1.0, 1.3498588075760032, 5.4739473917272}},
      {MapFn::expm1, {-0.9179150013761012, -0.3934693402873666, 0.0, 0.3498588075760031, 4.4739473917272}},
      {MapFn::sin, {-0.5984721441039565, -0.479425538604203, 0.0, 0.29552020666133955, 0.9916648104524686}},
      {MapFn::cos, {-0.8011436155469337, 0.8775825618903728, 1.0, 0.955336489125606, -0.12884449429552464}},
      {MapFn::tanh, {-0.9866142981514303, -0.46211715726000974, 0.0, 0.2913126124515909, 0.935409070603099}},
      {MapFn::sigmoid, {0.07585818002124355, 0.3775406687981454, 0.5, 0.574442516811659, 0.8455347349164652}},
      {MapFn::erf, {-0.999593047982555, -0.5204998778130465, 0.0, 0.3286267594591274, 0.9837904585907745}},
      {MapFn::gelu, {-0.015524163314440398, -0.15426876936299344, 0.0, 0.1853734266566858, 1.6242387133104768}},
      {MapFn::gelu_tanh, {-0.015084266089998577, -0.15428599017485606, 0.0, 0.18537092354275922, 1.624105895551156}},
      {MapFn::silu, {-0.18964545005310887, -0.1887703343990727, 0.0, 0.1723327550434977, 1.437409049357991}},
      {MapFn::softplus, {0.07888973429254963, 0.4740769841801067, 0.6931471805599453, 0.8543552444685272, 1.867786029386266}},
      {MapFn::relu, {0.0, 0.0, 0.0, 0.3, 1.7}},
      {MapFn::sign, {-1.0, -1.0, 0.0, 1.0, 1.0}},
      {MapFn::abs, {2.5, 0.5, 0.0, 0.3, 1.7}},
      {MapFn::neg, {2.5, 0.5, 0.0, -0.3, -1.7}},
      {MapFn::log, {1.0116009116784799, -0.2876820724517809, -1.3862943611198906, -0.5978370007556204, 0.6678293725756554}},
      {MapFn::log1p, {1.3217558399823195, 0.5596157879354227, 0.22314355131420976, 0.4382549309311553, 1.0818051703517284}},
      {MapFn::sqrt, {1.6583123951777, 0.8660254037844386, 0.5, 0.7416198487095663, 1.396424004376894}},
      {MapFn::tan, {0.7470222972386603, -0.5463024898437905, 0.0, 0.30933624960962325, -7.696602139459161}},
      {MapFn::asin, {-0.6751315329370317, -0.1253278311680654, 0.0, 0.07507049107671654, 0.4389618856097607}},
      {MapFn::acos, {2.2459278597319283, 1.696124157962962, 1.5707963267948966, 1.4957258357181802, 1.131834441185136}},
      {MapFn::atan, {-1.1902899496825317, -0.4636476090008061, 0.0, 0.2914567944778671, 1.039072259536091}},
      {MapFn::sinh, {-6.0502044810397875, -0.5210953054937474, 0.0, 0.3045202934471426, 2.6456319338372323}},
      {MapFn::cosh, {6.132289479663686, 1.1276259652063807, 1.0, 1.0453385141288605, 2.828315457889967}},
      {MapFn::erfc, {1.999593047982555, 1.5204998778130465, 1.0, 0.6713732405408726, 0.01620954140922544}},
      {MapFn::erfinv, {-0.627307347788559, -0.11123545184094996, 0.0, 0.06656520403154023, 0.39647691607072827}},
      {MapFn::lgamma, {0.47521466691493713, 0.20328095143129538, 1.2880225246980774, 0.48003085611112595, -0.020324499149577655}},
      {MapFn::floor, {-3.0, -1.0, 0.0, 0.0, 1.0}},
      {MapFn::ceil, {-2.0, -0.0, 0.0, 1.0, 2.0}},
      {MapFn::round, {-2.0, -0.0, 0.0, 0.0, 2.0}},
      {MapFn::trunc, {-2.0, -0.0, 0.0, 0.0, 1.0}},
      {MapFn::rsqrt, {0.6030226891555273, 1.1547005383792517, 2.0, 1.348399724926484, 0.7161148740394329}},
  };
  for (const auto& [fn, expected] : table) {
    const bool positive = fn == MapFn::log || fn == MapFn::log1p || fn == MapFn::sqrt || fn == MapFn::rsqrt || fn == MapFn::lgamma;
    const bool within_one = fn == MapFn::asin || fn == MapFn::acos || fn == MapFn::erfinv;
    Bench bench;
    const NodeId x = bench.reals("x", positive     ? Reals{2.75, 0.75, 0.25, 0.55, 1.95}
                                      : within_one ? Reals{-0.625, -0.125, 0, 0.075, 0.425}
                                                   : Reals{-2.5, -0.5, 0, 0.3, 1.7});
    const NodeId y = bench.build.map(fn, {x});
    const Tensor out = bench.run(y);
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK_MESSAGE(std::fabs(out.reals[i] - expected[i]) < 4e-15, to_string(fn), " of element ", i);
    CHECK(bench.counts(y).elementwise == 5);
    CHECK(bench.counts(y).transcendental == (is_transcendental(fn) ? 5 : 0));
  }
}

TEST_CASE("interpret map: NaN and infinities") {
  const auto unary = [](MapFn fn, double x) {
    Bench bench;
    return bench.run(bench.build.map(fn, {bench.reals("x", {x})})).reals[0];
  };
  CHECK(std::isnan(unary(MapFn::relu, kNan)));
  CHECK(std::isnan(unary(MapFn::sign, kNan)));
  CHECK(std::isnan(unary(MapFn::softplus, kNan)));
  CHECK(unary(MapFn::softplus, 1000) == 1000);
  CHECK(unary(MapFn::softplus, -kInf) == 0);
  CHECK(unary(MapFn::sigmoid, -kInf) == 0);
  CHECK(unary(MapFn::sigmoid, kInf) == 1);
  CHECK(unary(MapFn::log, 0) == -kInf);
  CHECK(unary(MapFn::rsqrt, 0) == kInf);
  CHECK(std::isnan(unary(MapFn::sqrt, -1)));
  CHECK(unary(MapFn::erfinv, 1) == kInf);
  CHECK(unary(MapFn::erfinv, -1) == -kInf);
  CHECK(std::isnan(unary(MapFn::erfinv, 1.5)));
  CHECK(unary(MapFn::erfinv, 1e-300) == doctest::Approx(0.88622692545275801e-300));
  CHECK(unary(MapFn::erfinv, 1 - 0x1p-53) == doctest::Approx(5.8635847487551676).epsilon(1e-15));
  CHECK(unary(MapFn::lgamma, -2) == kInf);
  CHECK(unary(MapFn::round, 2.5) == 2);
  CHECK(unary(MapFn::round, -3.5) == -4);
}

TEST_CASE("interpret map: binary functions") {
  struct Row {
    MapFn fn;
    double a, b, expected;
  };
  const Row rows[] = {
      {MapFn::add, 2, 0.5, 2.5},       {MapFn::sub, 2, 0.5, 1.5},       {MapFn::mul, 2, 0.5, 1},         {MapFn::div, 2, 0.5, 4},
      {MapFn::div, 1, 0, kInf},        {MapFn::div, 0, 0, kNan},        {MapFn::pow, 2, 0.5, M_SQRT2},   {MapFn::pow, 0, 0, 1},
      {MapFn::minimum, 2, 0.5, 0.5},   {MapFn::minimum, kNan, 1, kNan}, {MapFn::minimum, 1, kNan, kNan}, {MapFn::maximum, 2, 0.5, 2},
      {MapFn::maximum, kNan, 1, kNan}, {MapFn::maximum, 1, kNan, kNan},
  };
  for (const Row& row : rows) {
    Bench bench;
    const NodeId y = bench.build.map(row.fn, {bench.reals("a", {row.a}), bench.reals("b", {row.b})});
    const double out = bench.run(y).reals[0];
    CHECK_MESSAGE(same(out, row.expected), to_string(row.fn), " of ", row.a, " and ", row.b, " is ", out);
  }
}

TEST_CASE("interpret map: axes in any order, missing axes, the branch not taken") {
  Bench bench;
  const NodeId a = bench.matrix("a", 2, 3, {1, 2, 3, 4, 5, 6});
  const NodeId row = bench.reals("row", {10, 20, 30});
  const NodeId turned = bench.reals("turned", {named("c", 3), named("r", 2)}, {3, 2}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6});
  const NodeId operands[] = {row, turned};
  const AxisList maps[] = {{1}, {1, 0}};
  const NodeId sum = bench.build.map(MapFn::add, operands, maps, bench.graph.type(a).axes, DType::real);
  CHECK(bench.run(sum).reals == Reals{10.1, 20.3, 30.5, 10.2, 20.4, 30.6});
  const NodeId three = bench.build.constant(Poly(3));
  const NodeId large = bench.build.map(MapFn::greater, {a, three});
  const NodeId nan = bench.build.constant(kNan);
  const NodeId chosen = bench.build.map(MapFn::where, {large, nan, a});
  const Tensor out = bench.run(chosen);
  CHECK(out.reals[2] == 3);
  CHECK(std::isnan(out.reals[3]));
  CHECK(bench.counts(chosen).elementwise == 6);
}

TEST_CASE("interpret map: integers wrap in their dtype, comparisons are exact") {
  Bench bench;
  const NodeId a = bench.ints("a", {2147483647, -5, 7});
  const NodeId b = bench.ints("b", {1, 3, -2});
  CHECK(bench.run(bench.build.map(MapFn::add, {a, b})).ints == Ints{-2147483648, -2, 5});
  CHECK(bench.run(bench.build.map(MapFn::abs, {a})).ints == Ints{2147483647, 5, 7});
  CHECK(bench.run(bench.build.map(MapFn::maximum, {a, b})).ints == Ints{2147483647, 3, 7});
  CHECK(bench.run(bench.build.map(MapFn::div, {a, b})).reals == Reals{2147483647, -5.0 / 3, -3.5});
  CHECK(bench.run(bench.build.map(MapFn::pow, {b, b})).reals == Reals{1, 27, 0.25});
  const NodeId bytes = bench.ints("bytes", {200, 100, 255}, DType::u8);
  CHECK(bench.run(bench.build.map(MapFn::add, {bytes, bytes})).ints == Ints{144, 200, 254});
  const NodeId wide = bench.ints("wide", {9007199254740993, 4, 5}, DType::i64);
  const NodeId real = bench.reals("real", {9007199254740992.0, 4, 5.5});
  const NodeId equal[] = {wide, real};
  const AxisList maps[] = {{0}, {0}};
  CHECK(bench.run(bench.build.map(MapFn::equal, equal, maps, bench.graph.type(wide).axes, DType::boolean)).ints == Ints{0, 1, 0});
  const NodeId less = bench.build.map(MapFn::less, {a, b});
  CHECK(bench.run(less).ints == Ints{0, 1, 0});
  CHECK(bench.run(bench.build.map(MapFn::logical_not, {less})).ints == Ints{1, 0, 1});
}

TEST_CASE("interpret: stored arithmetic rounds each result to its dtype") {
  Bench bench;
  const NodeId x = bench.reals("x", {0.1, 1.0 / 3, 65519, 1e39});
  const NodeId half = bench.build.cast(x, DType::f16);
  const NodeId low = bench.build.cast(x, DType::bf16);
  const NodeId sum = bench.build.map(MapFn::add, {x, x});
  CHECK(bench.run(half).reals == Reals{0.1, 1.0 / 3, 65519, 1e39});
  bench.options.arithmetic = Arithmetic::stored;
  CHECK(bench.run(half).reals == Reals{0.0999755859375, 0.333251953125, 65504, kInf});
  CHECK(bench.run(low).reals == Reals{0.10009765625, 0.333984375, 65536, kInf});
  CHECK(bench.run(sum).reals == Reals{double{0.2f}, 2 * double{1.0f / 3}, 131038, kInf});
}

TEST_CASE("interpret map: integers are divided towards -infinity, and never by 0") {
  const auto divided = [](MapFn fn, int64_t a, int64_t b, DType dtype = DType::i64) {
    Bench bench;
    return bench.run(bench.build.map(fn, {bench.build.constant(Poly(a), dtype), bench.build.constant(Poly(b), dtype)})).ints[0];
  };
  const int64_t numbers[] = {-7, -6, -1, 1, 5, 6, 7};
  for (const int64_t a : numbers)
    for (const int64_t b : numbers) {
      const int64_t quotient = divided(MapFn::floor_div, a, b);
      CHECK(quotient == static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b))));
      CHECK(divided(MapFn::remainder, a, b) == a - b * quotient);
    }
  const auto least_by_minus_one = [](MapFn fn) {
    Bench bench;
    const auto number = [&](int64_t value) { return bench.build.constant(Poly(value), DType::i64); };
    return bench.run(bench.build.map(fn, {bench.build.map(MapFn::sub, {number(-INT64_MAX), number(1)}), number(-1)})).ints[0];
  };
  CHECK(least_by_minus_one(MapFn::floor_div) == INT64_MIN);
  CHECK(least_by_minus_one(MapFn::remainder) == 0);
  CHECK(divided(MapFn::floor_div, INT32_MIN, -1, DType::i32) == INT32_MIN);
  CHECK(divided(MapFn::floor_div, (int64_t{1} << 62) + 1, 3) == 1537228672809129301);
  CHECK_THROWS_WITH_AS(divided(MapFn::remainder, 3, 0), "division by zero: 'constant' at [] is 0", FaultyElement);
}

TEST_CASE("interpret map: clamp") {
  const auto clamped = [](double x, double lo, double hi) {
    Bench bench;
    const auto number = [&](double value) { return bench.build.constant(value, DType::f64); };
    return bench.run(bench.build.map(MapFn::clamp, {number(x), number(lo), number(hi)})).reals[0];
  };
  CHECK(clamped(-3, -1, 2) == -1);
  CHECK(clamped(3, -1, 2) == 2);
  CHECK(clamped(0.5, -1, 2) == 0.5);
  CHECK(clamped(0.5, 2, 1) == 1);
  CHECK(std::isnan(clamped(kNan, -1, 2)));
}
