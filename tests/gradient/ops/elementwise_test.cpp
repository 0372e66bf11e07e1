// SPDX-License-Identifier: Apache-2.0
// First and second derivatives of every elementwise function against finite differences; broadcasts; ties and zeros.
#include <set>

#include "tests/gradient/ops/check.h"

namespace einc::test {
namespace {

NodeId scaled(const Params& p, NodeId x) {  // x * v + s, so that gradients are summed over missing axes
  const NodeId operands[] = {x, p.v};
  const AxisList maps[] = {{0, 1}, {1}};
  return p.build.map(MapFn::add, {p.build.map(MapFn::mul, operands, maps, p.build.type(x).axes, DType::real), p.s});
}

struct Domain {
  MapFn fn;
  double lo, hi;
};

TEST_CASE("every elementwise function of one operand") {
  const Domain domains[] = {{MapFn::neg, -2, 2},      {MapFn::abs, -2, 2},        {MapFn::relu, -2, 2},    {MapFn::exp, -2, 2},
                            {MapFn::expm1, -2, 2},    {MapFn::log, 0.3, 2},       {MapFn::log1p, 0.1, 2},  {MapFn::sqrt, 0.3, 2},
                            {MapFn::rsqrt, 0.3, 2},   {MapFn::sin, -2, 2},        {MapFn::cos, -2, 2},     {MapFn::tanh, -2, 2},
                            {MapFn::sigmoid, -2, 2},  {MapFn::erf, -1, 1},        {MapFn::gelu, -2, 2},    {MapFn::gelu_tanh, -2, 2},
                            {MapFn::silu, -2, 2},     {MapFn::softplus, -2, 2},   {MapFn::tan, -0.3, 0.3}, {MapFn::asin, -0.2, 0.2},
                            {MapFn::acos, -0.2, 0.2}, {MapFn::atan, -2, 2},       {MapFn::sinh, -1, 1},    {MapFn::cosh, -1, 1},
                            {MapFn::erfc, -1, 1},     {MapFn::erfinv, -0.2, 0.2}, {MapFn::lgamma, 0.3, 2}};
  const std::set<MapFn> stepped{MapFn::sign, MapFn::logical_not, MapFn::floor, MapFn::ceil, MapFn::round, MapFn::trunc};
  std::set<MapFn> tested;
  for (const Domain& d : domains) {
    tested.insert(d.fn);
    check_case({std::string(to_string(d.fn)), [&](const Params& p) { return p.build.map(d.fn, {scaled(p, p.x)}); }, d.lo, d.hi});
  }
  for (size_t i = 0; i <= static_cast<size_t>(MapFn::lgamma); ++i) {
    const MapFn fn = static_cast<MapFn>(i);
    CHECK_MESSAGE((arity_of(fn) != 1 || stepped.contains(fn) || tested.contains(fn)), to_string(fn));
  }
}

TEST_CASE("every elementwise function of two operands") {
  const Domain domains[] = {{MapFn::add, -2, 2},  {MapFn::sub, -2, 2},     {MapFn::mul, -2, 2},     {MapFn::div, 0.5, 2},
                            {MapFn::pow, 0.3, 2}, {MapFn::minimum, -2, 2}, {MapFn::maximum, -2, 2}, {MapFn::atan2, 0.5, 2}};
  for (const Domain& d : domains) {
    check_case({std::string(to_string(d.fn)), [&](const Params& p) { return p.build.map(d.fn, {p.x, p.y}); }, d.lo, d.hi});
    check_case({std::string(to_string(d.fn)) + " broadcast",
                [&](const Params& p) {
                  return p.build.map(d.fn, {p.s, scaled(p, p.x)});
                },
                d.lo, d.hi});
    check_case({std::string(to_string(d.fn)) + " of itself", [&](const Params& p) { return p.build.map(d.fn, {p.x, p.x}); }, d.lo, d.hi});
  }
}

TEST_CASE("powers with a constant exponent") {
  for (const double exponent : {-1.0, -0.5, 0.5, 1.0, 2.0, 2.5, 3.0})
    check_case({"power " + std::to_string(exponent),
                [&](const Params& p) {
                  return p.build.map(MapFn::pow, {scaled(p, p.x), p.build.constant(exponent)});
                },
                0.3, 2});
  check_case({"x^dim", [](const Params& p) { return p.build.map(MapFn::pow, {p.x, p.build.constant(Poly::dim("b"))}); }, -2, 2});
}

TEST_CASE("the derivatives of lgamma below 0") {
  check_case({"lgamma", [](const Params& p) { return p.build.map(MapFn::lgamma, {p.x}); }, -2.8, -2.2});
  check_case({"lgamma beside 0", [](const Params& p) { return p.build.map(MapFn::lgamma, {p.x}); }, -0.45, -0.3});
  check_case({"lgamma above 0", [](const Params& p) { return p.build.map(MapFn::lgamma, {p.x}); }, 0.2, 0.9});
}

TEST_CASE("clamp") {
  check_case({"of x", [](const Params& p) {
                return p.build.map(MapFn::clamp, {scaled(p, p.x), p.build.constant(-0.5), p.build.constant(0.75)});
              }});
  check_case({"bounds that broadcast", [](const Params& p) {
                const NodeId operands[] = {scaled(p, p.x), p.v, p.y};
                const AxisList maps[] = {{0, 1}, {1}, {0, 1}};
                return p.build.map(MapFn::clamp, operands, maps, p.build.type(p.x).axes, DType::real);
              }});
}

TEST_CASE("where, broadcast and permuted operands") {
  check_case({"where", [](const Params& p) {
                return p.build.map(MapFn::where, {p.build.map(MapFn::less, {p.x, p.y}), scaled(p, p.x), p.s});
              }});
  check_case({"outer", [](const Params& p) {
                const NodeId operands[] = {p.v, p.v};
                const AxisList maps[] = {{1}, {0}};
                return p.build.map(MapFn::mul, operands, maps, p.build.type(p.square).axes, DType::real);
              }});
  check_case({"transposed", [](const Params& p) {
                const NodeId operands[] = {p.square, p.square};
                const AxisList maps[] = {{0, 1}, {1, 0}};
                return p.build.map(MapFn::mul, operands, maps, p.build.type(p.square).axes, DType::real);
              }});
}

// Gradients at chosen values of x [3], as written.
std::vector<double> gradient_at(const std::function<NodeId(Builder&, NodeId)>& make, std::vector<double> x) {
  Graph graph;
  Builder build(graph);
  const int64_t n = static_cast<int64_t>(x.size());
  const NodeId param = build.param({"x", {}}, Type{DType::real, {{"n", Poly(n)}}});
  const NodeId y = make(build, param);
  minimize(graph, build, build.reduce(ReduceFn::sum, y, AxisList::range(build.type(y).rank())));
  return interpret(simplify(graph, Roots::training), {}, {}, {{"x", Tensor::of_reals({n}, std::move(x))}}, {}).gradients.at("x").reals;
}
using Values = std::vector<double>;

TEST_CASE("values at ties, zeros and branches not taken") {
  const auto with = [](MapFn fn, double number) { return [=](Builder& b, NodeId x) { return b.map(fn, {x, b.constant(number)}); }; };
  const auto unary = [](MapFn fn) { return [=](Builder& b, NodeId x) { return b.map(fn, {x}); }; };
  const auto reduce = [](ReduceFn fn) { return [=](Builder& b, NodeId x) { return b.reduce(fn, x, {0}); }; };
  CHECK(gradient_at(with(MapFn::maximum, 1), {0, 1, 2}) == Values{0, 0.5, 1});
  CHECK(gradient_at(with(MapFn::minimum, 1), {0, 1, 2}) == Values{1, 0.5, 0});
  CHECK(gradient_at(unary(MapFn::relu), {-1, 0, 2}) == Values{0, 0, 1});
  CHECK(gradient_at(unary(MapFn::abs), {-1, 0, 2}) == Values{-1, 0, 1});
  CHECK(gradient_at(reduce(ReduceFn::max), {3, 1, 3}) == Values{0.5, 0, 0.5});
  CHECK(gradient_at(reduce(ReduceFn::min), {3, 1, 3}) == Values{0, 1, 0});
  CHECK(gradient_at(reduce(ReduceFn::prod), {2, 3, 4}) == Values{12, 8, 6});
  CHECK(gradient_at(reduce(ReduceFn::prod), {2, 0, 4}) == Values{0, 8, 0});
  CHECK(gradient_at(reduce(ReduceFn::prod), {0, 0, 4}) == Values{0, 0, 0});
  CHECK(gradient_at(with(MapFn::pow, 2), {0, -1, 3}) == Values{0, -2, 6});
  // log of the branch not taken is nan or -inf, its gradient inf: an exact 0 all the same.
  const auto guarded = [](Builder& b, NodeId x) {
    return b.map(MapFn::where, {b.map(MapFn::greater, {x, b.constant(Poly(0))}), b.map(MapFn::log, {x}), b.constant(Poly(0))});
  };
  CHECK(gradient_at(guarded, {-1, 4, 2})[1] == 0.25);
  CHECK(gradient_at(guarded, {-1, 4, 2})[0] == 0);
  const auto exponent_of_zero = [](Builder& b, NodeId x) { return b.map(MapFn::pow, {b.map(MapFn::mul, {x, b.constant(Poly(0))}), x}); };
  CHECK(gradient_at(exponent_of_zero, {1, 2, 3}) == Values{0, 0, 0});
}

}  // namespace
}  // namespace einc::test
