// SPDX-License-Identifier: Apache-2.0
// Bounds hold every value that the functions give in f32, and only what may be no number or too large is unbounded.
#include "runtime/program/update_bounds.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace einc {
namespace {

struct Sampled {
  BoundFn fn;
  int arity;
  float (*value)(float, float);
};

constexpr Sampled kFns[] = {
    {BoundFn::add, 2, [](float a, float b) { return a + b; }},
    {BoundFn::sub, 2, [](float a, float b) { return a - b; }},
    {BoundFn::mul, 2, [](float a, float b) { return a * b; }},
    {BoundFn::div, 2, [](float a, float b) { return a / b; }},
    {BoundFn::pow, 2, [](float a, float b) { return std::pow(a, b); }},
    {BoundFn::minimum, 2, [](float a, float b) { return std::min(a, b); }},
    {BoundFn::maximum, 2, [](float a, float b) { return std::max(a, b); }},
    {BoundFn::less, 2, [](float a, float b) { return a < b ? 1.0f : 0.0f; }},
    {BoundFn::greater_equal, 2, [](float a, float b) { return a >= b ? 1.0f : 0.0f; }},
    {BoundFn::neg, 1, [](float a, float) { return -a; }},
    {BoundFn::abs, 1, [](float a, float) { return std::fabs(a); }},
    {BoundFn::relu, 1, [](float a, float) { return std::max(a, 0.0f); }},
    {BoundFn::exp, 1, [](float a, float) { return std::exp(a); }},
    {BoundFn::expm1, 1, [](float a, float) { return std::expm1(a); }},
    {BoundFn::log, 1, [](float a, float) { return std::log(a); }},
    {BoundFn::log1p, 1, [](float a, float) { return std::log1p(a); }},
    {BoundFn::sqrt, 1, [](float a, float) { return std::sqrt(a); }},
    {BoundFn::rsqrt, 1, [](float a, float) { return 1 / std::sqrt(a); }},
    {BoundFn::sin, 1, [](float a, float) { return std::sin(a); }},
    {BoundFn::tanh, 1, [](float a, float) { return std::tanh(a); }},
    {BoundFn::sigmoid, 1, [](float a, float) { return 1 / (1 + std::exp(-a)); }},
    {BoundFn::gelu, 1, [](float a, float) { return a * 0.5f * std::erfc(-a * 0.70710678f); }},
    {BoundFn::silu, 1, [](float a, float) { return a / (1 + std::exp(-a)); }},
    {BoundFn::softplus, 1, [](float a, float) { return std::log1p(std::exp(-std::fabs(a))) + std::max(a, 0.0f); }},
};

BoundOp leaf() { return {BoundFn::magnitude}; }
BoundOp op(BoundFn fn, uint32_t a, uint32_t b = 0, uint32_t c = 0) { return {fn, DType::f32, {a, b, c}}; }
BoundOp constant(double value) { return {BoundFn::constant, DType::f32, {}, value}; }

Interval bound(const std::vector<BoundOp>& ops, const std::vector<Interval>& given) {
  std::vector<Interval> leaves = given;
  leaves.resize(ops.size());
  return evaluate_bounds(ops, leaves).back();
}

}  // namespace

TEST_CASE("bounds hold all values") {
  std::mt19937 random(1);
  const auto draw = [&](double scale) { return static_cast<float>(std::uniform_real_distribution<double>(-scale, scale)(random)); };
  for (const Sampled& f : kFns)
    for (int i = 0; i < 300; ++i) {
      const double scale = std::pow(10, std::uniform_real_distribution<double>(-3, 19)(random));
      float a[2] = {draw(scale), draw(scale)}, b[2] = {draw(scale), draw(scale)};
      if (i % 2 == 0)
        for (float* x : {&a[0], &a[1], &b[0], &b[1]}) *x = std::fabs(*x);
      std::sort(a, a + 2), std::sort(b, b + 2);
      const Interval found = bound({leaf(), leaf(), op(f.fn, 0, f.arity == 2 ? 1 : 0)}, {{a[0], a[1]}, {b[0], b[1]}});
      for (int k = 0; k < 40; ++k) {
        const auto within = [&](const float* x) {
          return k < 4 ? x[(x == a ? k : k / 2) % 2] : std::uniform_real_distribution<float>(x[0], x[1])(random);
        };
        const float value = f.value(within(a), within(b));
        INFO("fn ", static_cast<int>(f.fn), " of ", a[0], "..", a[1], " and ", b[0], "..", b[1], " is ", value);
        if (found.is_bounded()) CHECK((static_cast<double>(value) >= found.low && static_cast<double>(value) <= found.high));
      }
    }
}

TEST_CASE("what may be too large or no number is unbounded, and what is made of it") {
  const Interval one{-1, 1};
  CHECK(bound({leaf(), constant(2), op(BoundFn::mul, 0, 1)}, {Interval::within(1e38)}).is_bounded());
  CHECK(!bound({leaf(), constant(2), op(BoundFn::mul, 0, 1)}, {Interval::within(3e38)}).is_bounded());
  CHECK(!bound({leaf(), op(BoundFn::sqrt, 0)}, {one}).is_bounded());
  CHECK(bound({leaf(), op(BoundFn::mul, 0, 0), op(BoundFn::sqrt, 1)}, {one}).is_bounded());
  CHECK(!bound({leaf(), op(BoundFn::div, 0, 0)}, {one}).is_bounded());
  CHECK(!bound({leaf(), op(BoundFn::log, 0), op(BoundFn::sigmoid, 1)}, {one}).is_bounded());
  // A step that is skipped keeps the old value.
  const std::vector<BoundOp> skipped{leaf(), leaf(), leaf(), op(BoundFn::where, 0, 1, 2)};
  CHECK(bound(skipped, {Interval::point(0), {}, one}) == one);
  CHECK(!bound(skipped, {Interval::point(1), {}, one}).is_bounded());
  CHECK(!bound(skipped, {{0, 1}, {}, one}).is_bounded());
  // bf16 and f16 hold less.
  CHECK(!bound({leaf(), {BoundFn::cast, DType::f16, {0}}}, {Interval::within(1e5)}).is_bounded());
  CHECK(bound({leaf(), {BoundFn::cast, DType::bf16, {0}}}, {Interval::within(1e5)}).is_bounded());
}

}  // namespace einc
