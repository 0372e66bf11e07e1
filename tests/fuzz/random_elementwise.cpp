// SPDX-License-Identifier: Apache-2.0
// Statements of random programs that work element by element, on reals and on integers.
#include "tests/fuzz/random_writer.h"

namespace einc {
namespace {

bool unary(RandomWriter& w) {
  constexpr const char* functions[] = {"tanh({0})",
                                       "sigmoid({0})",
                                       "erf({0})",
                                       "gelu({0})",
                                       "gelu_tanh({0})",
                                       "silu({0})",
                                       "softplus({0})",
                                       "sin({0})",
                                       "cos({0})",
                                       "relu({0})",
                                       "abs({0})",
                                       "-{0}",
                                       "exp(-abs({0}))",
                                       "exp(min({0}, 1))",
                                       "sqrt({0}^2 + 0.5)",
                                       "log(1.5 + {0}^2)",
                                       "rsqrt(1 + {0}^2)",
                                       "expm1(tanh({0}))",
                                       "log1p({0}^2)",
                                       "0.25 * {0}^3",
                                       "sign({0} - 0.25)",
                                       "{0} * sigmoid({0})",
                                       "tanh({0}) * sigmoid({0}) + {0}",
                                       "1 / (1 + exp(-{0}))",
                                       "atan({0})",
                                       "asin(0.9 * tanh({0}))",
                                       "acos(0.9 * tanh({0}))",
                                       "sinh(tanh({0}))",
                                       "cosh(tanh({0}))",
                                       "tan(tanh({0}))",
                                       "erfc({0})",
                                       "erfinv(0.9 * tanh({0}))",
                                       "0.2 * lgamma(1.5 + {0}^2)",
                                       "clamp({0}, -0.4, 0.6)",
                                       "where(isfinite({0}) and not isnan({0}), {0}, 1)",
                                       "where({0} > 0, {0}, 0.1 * {0})",
                                       "min(max({0}, -0.5), 0.5)",
                                       "pow(abs({0}) + 0.5, 1.5)"};
  const RandomValue x = w.any();
  w.let(fmt::format(fmt::runtime(w.one_of(functions)), x.name), x.axes, x.dtype);
  return true;
}

// Of two values that align; every third time of the same axes.
bool binary(RandomWriter& w) {
  constexpr const char* functions[] = {"{0} + {1}",
                                       "{0} - {1}",
                                       "{0} * {1}",
                                       "{0} * 0.5 - {1}",
                                       "{0} / ({1}^2 + 1)",
                                       "max({0}, {1} * 0.7)",
                                       "atan2({0}, {1}^2 + 0.5)",
                                       "clamp({0}, -0.5, {1}^2 + 0.1)",
                                       "min({0}, {1} + 0.1)",
                                       "pow(abs({0}) + 0.5, tanh({1}))",
                                       "tanh({0}) * {1} + 0.3",
                                       "{0} * sigmoid({1})",
                                       "sigmoid({1}) * tanh({0}) + (1 - sigmoid({1})) * {0}",
                                       "({0} - {1})^2",
                                       "silu({0}) * tanh({1}) + {0} * {1}"};
  const RandomValue x = w.any(), y = w.chance(3) ? w.like(x) : w.any();
  const Axes axes = aligned(x.axes, y.axes);
  if (!w.fits(axes)) return false;
  const char* f = w.one_of(functions);
  const bool turned = std::string_view(f).substr(0, 11) == "sigmoid({1}";
  w.let_aligned(fmt::format(fmt::runtime(f), x.name, y.name), x, y, turned ? aligned(y.axes, x.axes) : axes, promoted(x.dtype, y.dtype));
  return true;
}

bool comparison(RandomWriter& w) {
  const RandomValue x = w.any(), y = w.chance(2) ? w.like(x) : w.any();
  const Axes axes = aligned(x.axes, y.axes);
  if (!w.fits(axes)) return false;
  const Axes product = aligned(y.axes, x.axes), chosen = aligned(axes, product);
  w.let_aligned(fmt::format("where({0} > {1} + 0.01, {1} * {0}, -0.5)", x.name, y.name), x, y, chosen, promoted(x.dtype, y.dtype));
  return true;
}

// A triangle or a band of two axes.
bool mask(RandomWriter& w) {
  const RandomValue x = w.any();
  if (x.axes.size() < 2) return false;
  const std::string row = x.axes[0], column = x.axes.back();
  // where's condition comes first: it decides the order where it has all axes.
  const Axes axes = x.axes.size() == 2 ? Axes{column, row} : x.axes;
  constexpr const char* masks[] = {"softmax(where(iota({1}) <= iota({2}) + {3}, {0}, -inf), {1})",
                                   "where(iota({1}) * 2 < iota({2}) + 3, {0}, 0)"};
  // The first element of each row stays, so that no row is all -inf.
  w.let(fmt::format(fmt::runtime(w.one_of(masks)), x.name, column, row, w.below(3)), axes, x.dtype);
  return true;
}

// Of values that are known exactly, so that all that compute it round alike.
bool rounded(RandomWriter& w) {
  if (w.differentiable) return false;
  const RandomValue x = w.source();
  constexpr const char* formats[] = {"bf16", "f16"};
  w.let(fmt::format("stop_gradient(cast(cast({}, {}), f32))", x.name, w.one_of(formats)), x.axes, "f32");
  return true;
}

bool stopped(RandomWriter& w) {
  if (w.differentiable) return false;
  const RandomValue x = w.any();
  w.let(w.chance(2) ? fmt::format("stop_gradient({})", x.name) : fmt::format("cast({0} > 0.1, f32) - stop_gradient({0}) * 0.1", x.name),
        x.axes, promoted(x.dtype, "f32"));
  return true;
}

bool integer_arithmetic(RandomWriter& w) {
  constexpr const char* functions[] = {"{0} + {1}",
                                       "{0} * {1} - {0}",
                                       "max({0}, {1})",
                                       "min({0}, {1}) * 3",
                                       "where({0} > {1}, {0}, {1})",
                                       "{0} // ({1} * {1} + 1) + {0} % 3",
                                       "({0} - 7) // 2 + ({0} + {1}) % (max({1}, 0) + 1)",
                                       "clamp({0}, 1, {1})",  // u8 has no negative numbers
                                       "where({0} == {1}, {1}, {0} + 2)"};
  const RandomValue x = w.any_integers(), y = w.any_integers();
  const Axes axes = aligned(x.axes, y.axes);
  std::string dtype = promoted(x.dtype, y.dtype);
  if (!w.fits(axes)) return false;
  const size_t kind = w.below(std::size(functions));
  if (dtype == "bool") return false;  // their arithmetic is of i32
  w.let_aligned(fmt::format(fmt::runtime(functions[kind]), x.name, y.name), x, y, axes, dtype);
  return true;
}

bool integer_to_real(RandomWriter& w) {
  const RandomValue n = w.any_integers(), x = w.any();
  const Axes axes = aligned(n.axes, x.axes);
  if (!w.fits(axes)) return false;
  constexpr const char* functions[] = {"sin(cast({0}, f32)) * {1}", "where({0} > 0, {1}, -{1})", "tanh(0.3 * {0}) + {1}",
                                       "cast({1} > 0.2, i32) * cast({0}, f32) * 0.1 + {1}"};
  const size_t kind = w.below(std::size(functions));
  const Axes made = kind == 3 ? aligned(aligned(x.axes, n.axes), x.axes) : axes;
  if (n.dtype == "bool" && kind == 1) {
    w.let_aligned(fmt::format("where({0}, {1}, -{1})", n.name, x.name), n, x, made, x.dtype);
    return true;
  }
  w.let_aligned(fmt::format(fmt::runtime(functions[kind]), n.name, x.name), n, x, made, kind == 1 ? x.dtype : promoted(x.dtype, "f32"));
  return true;
}

bool boolean(RandomWriter& w) {
  const RandomValue x = w.any(), y = w.like(x);
  // Where both are equal but for rounding (x and tanh(x) of small x), either choice gives about the same.
  w.let(fmt::format("where({0} > 0.1 and not ({1} < -0.2), {0}, {1} * 0.5) + where({0} == {1}, {0}, {1})", x.name, y.name), x.axes,
        promoted(x.dtype, y.dtype));
  return true;
}

bool drawn(RandomWriter& w) {
  const RandomValue x = w.with_axis();
  if (!x.found()) return false;
  constexpr const char* draws[] = {"dropout({0}, 0.25)",
                                   "{0} + 0.5 * uniform({1})",
                                   "{0} + 0.5 * normal({1})",
                                   "dropout({0}, 0.5) * sigmoid({0})",
                                   "where(bernoulli(sigmoid({0})), {0}, 0.5)",
                                   "{0} + 0.1 * randint(-2, 3, {1})"};
  w.let(fmt::format(fmt::runtime(w.one_of(draws)), x.name, fmt::join(x.axes, ", ")), x.axes, x.dtype);
  return true;
}

constexpr StatementKind kElementwiseKinds[] = {{"unary", 6, unary},
                                               {"binary", 10, binary},
                                               {"comparison", 2, comparison},
                                               {"mask", 2, mask},
                                               {"rounded", 2, rounded},
                                               {"stopped", 2, stopped},
                                               {"integer arithmetic", 2, integer_arithmetic},
                                               {"integer to real", 2, integer_to_real},
                                               {"boolean", 1, boolean},
                                               {"drawn", 2, drawn}};

}  // namespace

std::span<const StatementKind> elementwise_statements() { return kElementwiseKinds; }

}  // namespace einc
