// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/math.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "tests/unit/codegen/kernels.h"

using namespace einc;

namespace {

using Exact = long double;

Exact sigmoid(Exact x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

// By halving: of what both lack to 1 where that is less.
Exact inverse_erf(Exact x) {
  const Exact a = std::fabs(x);
  if (!(a < 1)) return a == 1 ? std::copysign(std::numeric_limits<Exact>::infinity(), x) : std::numeric_limits<Exact>::quiet_NaN();
  if (a < 1e-9L) return x * std::sqrt(std::acos(-1.0L)) / 2;
  Exact low = 0, high = 7;
  for (int step = 0; step < 140; ++step) {
    const Exact middle = (low + high) / 2;
    (a < 0.5L ? std::erf(middle) > a : std::erfc(middle) < 1 - a) ? high = middle : low = middle;
  }
  return std::copysign((low + high) / 2, x);
}

Exact reference(MathFn fn, Exact x) {
  switch (fn) {
    case MathFn::exp:
      return std::exp(x);
    case MathFn::expm1:
      return std::expm1(x);
    case MathFn::log:
      return std::log(x);
    case MathFn::log1p:
      return std::log1p(x);
    case MathFn::tanh:
      return std::tanh(x);
    case MathFn::sigmoid:
      return sigmoid(x);
    case MathFn::erf:
      return std::erf(x);
    case MathFn::sin:
      return std::sin(x);
    case MathFn::cos:
      return std::cos(x);
    case MathFn::rsqrt:
      return 1 / std::sqrt(x);
    case MathFn::gelu:
      return 0.5L * x * std::erfc(-x / std::sqrt(2.0L));
    case MathFn::gelu_tanh:
      return x * sigmoid(2 * std::sqrt(2 / std::acos(-1.0L)) * (x + 0.044715L * x * x * x));
    case MathFn::silu:
      return x * sigmoid(x);
    case MathFn::softplus:
      return std::isnan(x) ? x : std::fmax(x, 0.0L) + std::log1p(std::exp(-std::fabs(x)));
    case MathFn::tan:
      return std::tan(x);
    case MathFn::asin:
      return std::asin(x);
    case MathFn::acos:
      return std::acos(x);
    case MathFn::atan:
      return std::atan(x);
    case MathFn::sinh:
      return std::sinh(x);
    case MathFn::cosh:
      return std::cosh(x);
    case MathFn::erfc:
      return std::erfc(x);
    case MathFn::erfinv:
      return inverse_erf(x);
    case MathFn::lgamma:
      return std::lgamma(x);
  }
  return 0;
}

struct Row {
  MathFn fn;
  const char* name;
  double in_float, floor_in_float, in_double, floor_in_double;
};
const Row kRows[] = {
#define EINC_ROW(name, ...) {MathFn::name, #name, __VA_ARGS__},
    EINC_MATH_FNS(EINC_ROW)
#undef EINC_ROW
};

template <class T>
T from_bits(uint64_t bits) {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  else
    return std::bit_cast<double>(bits);
}

template <class T>
std::vector<T> special_numbers() {
  using L = std::numeric_limits<T>;
  std::vector<T> numbers;
  for (const T x : {T(0),          L::denorm_min(), L::min() / 3, L::min(), L::epsilon(), T(0.25),      T(0.5),   T(0.92),
                    T(1),          T(1.5),          T(2),         T(3),     T(4),         T(88),        T(89),    T(104),
                    T(700),        T(745),          T(1e5),       T(1e10),  T(1e20),      L::max() / 2, L::max(), L::infinity(),
                    L::quiet_NaN()}) {
    for (const T y : {x, std::nextafter(x, T(0)), std::nextafter(x, L::infinity())}) {
      numbers.push_back(y);
      numbers.push_back(-y);
    }
  }
  // Nearest to a multiple of pi / 2 among all floats, and all doubles.
  numbers.push_back(static_cast<T>(16367173 * 0x1p72));
  if (sizeof(T) == 8) numbers.push_back(static_cast<T>(6381956970095103 * 0x1p797));
  return numbers;
}

// A stride through all bit patterns, a denser one through the numbers between 2^-8 and 128, and the special ones; count is a multiple
// of 64.
template <class T>
std::vector<T> arguments(size_t count) {
  std::vector<T> numbers = special_numbers<T>();
  const uint64_t patterns = sizeof(T) == 4 ? (uint64_t{1} << 32) - 1 : ~uint64_t{0};
  const uint64_t low = sizeof(T) == 4 ? std::bit_cast<uint32_t>(0.00390625f) : std::bit_cast<uint64_t>(0.00390625);
  const uint64_t high = sizeof(T) == 4 ? std::bit_cast<uint32_t>(128.0f) : std::bit_cast<uint64_t>(128.0);
  const size_t half = (count - numbers.size()) / 2;
  for (size_t i = 0; i < half; ++i) numbers.push_back(from_bits<T>(patterns / half * i + i % 1021));
  const size_t rest = count - numbers.size();
  for (size_t i = 0; i < rest; ++i) {
    const T x = from_bits<T>(low + (high - low) / rest * i + i % 7);
    numbers.push_back(i % 2 == 0 ? x : -x);
  }
  return numbers;
}

// The distance of `got` from `want` in units of the last place at `unit_at`.
template <class T>
double ulps(T got, Exact want, Exact unit_at) {
  int exponent = 0;
  std::frexp(unit_at, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  const Exact unit = std::ldexp(Exact(1), exponent - std::numeric_limits<T>::digits);
  // Past the greatest number, infinity stands where the next number would.
  const Exact value = std::isinf(got) ? std::copysign(std::ldexp(Exact(1), std::numeric_limits<T>::max_exponent), got) : Exact(got);
  const Exact bounded = std::fabs(want) > std::ldexp(Exact(1), std::numeric_limits<T>::max_exponent)
                            ? std::copysign(std::ldexp(Exact(1), std::numeric_limits<T>::max_exponent), want)
                            : want;
  return static_cast<double>(std::fabs(value - bounded) / unit);
}

struct Worst {
  double ulps = 0;
  double at = 0;
};

template <class T>
bool same_kind(T got, Exact want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  return std::signbit(got) == std::signbit(want) || (want != 0 && got == 0 && std::fabs(want) < std::numeric_limits<T>::denorm_min());
}

template <class T>
Worst compare(const Row& row, const std::vector<T>& x, const std::vector<T>& y) {
  Worst worst;
  const double floor = sizeof(T) == 4 ? row.floor_in_float : row.floor_in_double;
  for (size_t i = 0; i < x.size(); ++i) {
    const Exact want = reference(row.fn, x[i]);
    if (!same_kind(y[i], want)) FAIL_CHECK(fmt::format("{}({}) = {}, not {}", row.name, x[i], y[i], want));
    if (std::isnan(want) || (std::isinf(want) && std::isinf(x[i]) && y[i] == want)) continue;
    // Between two poles of lgamma is a zero: what is lost there is a share of the logarithms that it is the difference of.
    const Exact terms = row.fn == MathFn::lgamma && x[i] < 0 ? std::fabs(std::lgamma(1 - Exact(x[i]))) + 2 : 0;
    const double off = ulps(y[i], want, std::max({std::fabs(want), std::fabs(Exact(x[i])) * floor, terms}));
    if (!(off <= worst.ulps)) worst = {off, static_cast<double>(x[i])};
  }
  return worst;
}

EmitLanes emitter(MathFn fn) {
  return [fn](llvm::IRBuilder<>& builder, const std::vector<llvm::Value*>& x) { return emit_math(builder, fn, x[0]); };
}

template <class T>
void check_all(size_t count) {
  Engine engine({});
  const std::vector<T> x = arguments<T>(count);
  std::vector<T> y(count);
  for (const Row& row : kRows) {
    const ArrayKernel<T> kernel(engine, 64 / sizeof(T), emitter(row.fn));
    kernel.run(y.data(), x.data(), x.data(), static_cast<int64_t>(count));
    const Worst worst = compare(row, x, y);
    const double bound = sizeof(T) == 4 ? row.in_float : row.in_double;
    MESSAGE(fmt::format("{} {}: {:.3f} ulp at {}, bound {}", row.name, sizeof(T) == 4 ? "float" : "double", worst.ulps, worst.at, bound));
    CHECK_MESSAGE(worst.ulps <= bound, std::string(row.name));
  }
}

}  // namespace

TEST_CASE("math: every function of floats keeps its bound") { check_all<float>(size_t{1} << 19); }

TEST_CASE("math: every function of doubles keeps its bound") { check_all<double>(size_t{1} << 17); }

TEST_CASE("math: the slope of gelu") {
  Engine engine({});
  const std::vector<float> x = arguments<float>(size_t{1} << 19);
  std::vector<float> y(x.size());
  const ArrayKernel<float> kernel(engine, 16,
                                  [](llvm::IRBuilder<>& b, const std::vector<llvm::Value*>& v) { return emit_gelu_slope(b, v[0]); });
  kernel.run(y.data(), x.data(), x.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const Exact a = x[i], density = std::exp(-a * a / 2) / std::sqrt(2 * std::acos(-1.0L));
    const Exact want = 0.5L * std::erfc(-a / std::sqrt(2.0L)) + a * density;
    if (std::isnan(want) != std::isnan(y[i])) FAIL_CHECK(fmt::format("slope of gelu at {} is {}, not {}", x[i], y[i], want));
    if (!std::isnan(want)) worst = std::max(worst, static_cast<double>(std::fabs(y[i] - want)) * 0x1p23);
  }
  MESSAGE(fmt::format("slope of gelu: {:.3f} units of the last place of 1", worst));
  CHECK(worst <= 1.5);
}

TEST_CASE_TEMPLATE("math: any number of lanes gives the same bits", T, float, double) {
  Engine engine({});
  const std::vector<T> x = arguments<T>(6144);
  std::vector<T> wide(x.size()), other(x.size());
  for (const Row& row : kRows) {
    ArrayKernel<T>(engine, 64 / sizeof(T), emitter(row.fn)).run(wide.data(), x.data(), x.data(), 6144);
    for (const unsigned lanes : {1u, 2u, 3u, 32u}) {
      ArrayKernel<T>(engine, lanes, emitter(row.fn)).run(other.data(), x.data(), x.data(), 6144);
      // Which NaN is made of a NaN is the processor's choice, and differs between its instructions.
      for (size_t i = 0; i < x.size(); ++i)
        if (!std::isnan(wide[i]) || !std::isnan(other[i]))
          CHECK_MESSAGE(std::memcmp(&wide[i], &other[i], sizeof(T)) == 0, fmt::format("{} of {} with {} lanes", row.name, x[i], lanes));
    }
  }
}

TEST_CASE_TEMPLATE("math: pow", T, float, double) {
  Engine engine({});
  const ArrayKernel<T> kernel(engine, 64 / sizeof(T),
                              [](llvm::IRBuilder<>& b, const std::vector<llvm::Value*>& x) { return emit_pow(b, x[0], x[1]); });
  std::vector<T> x, y;
  const auto add = [&](T base, T exponent) { x.push_back(base), y.push_back(exponent); };
  std::vector<T> special = special_numbers<T>();
  for (const T odd : {T(3), T(-1), T(-5), T(16777215), T(-16777213)}) special.push_back(odd);
  for (const T base : special)
    for (const T exponent : special) add(base, exponent);
  std::mt19937_64 random(7);
  const auto uniform = [&](double lo, double hi) { return lo + (hi - lo) * static_cast<double>(random() >> 11) * 0x1p-53; };
  const double reach = sizeof(T) == 4 ? 130 : 1060;
  while (x.size() < 300000) {
    add(static_cast<T>(uniform(0, 4)), static_cast<T>(uniform(-20, 20)));
    const auto base = static_cast<T>(std::exp2(uniform(-reach, reach)));  // the result's exponent spreads over its range
    add(base, static_cast<T>(uniform(-reach, reach) / std::log2(base)));
    add(static_cast<T>(1 + uniform(-1, 1) * std::exp2(uniform(-20, 0))), static_cast<T>(std::exp2(uniform(0, 20))));
    add(static_cast<T>(uniform(-3, 3)), static_cast<T>(std::round(uniform(-40, 40))));
  }
  while (x.size() % 16 != 0) add(1, 1);
  std::vector<T> out(x.size());
  kernel.run(out.data(), x.data(), y.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const Exact want = std::pow(Exact(x[i]), Exact(y[i]));
    if (!same_kind(out[i], want)) FAIL_CHECK(fmt::format("pow({}, {}) = {}, not {}", x[i], y[i], out[i], want));
    if (std::isnan(want) || (std::isinf(want) && out[i] == want)) continue;
    const double off = ulps(out[i], want, want);
    if (off > worst && off > 2) MESSAGE(fmt::format("pow({}, {}) = {}, not {}", x[i], y[i], out[i], want));
    worst = std::max(worst, off);
  }
  MESSAGE(fmt::format("pow {}: {:.3f} ulp", sizeof(T) == 4 ? "float" : "double", worst));
  CHECK(worst <= (sizeof(T) == 4 ? 1 : 2));
}

TEST_CASE_TEMPLATE("math: atan2", T, float, double) {
  Engine engine({});
  const ArrayKernel<T> kernel(engine, 64 / sizeof(T),
                              [](llvm::IRBuilder<>& b, const std::vector<llvm::Value*>& x) { return emit_atan2(b, x[0], x[1]); });
  std::vector<T> y, x;
  const std::vector<T> special = special_numbers<T>();
  for (const T up : special)
    for (const T along : special) y.push_back(up), x.push_back(along);
  std::mt19937_64 random(5);
  const auto uniform = [&](double lo, double hi) { return lo + (hi - lo) * static_cast<double>(random() >> 11) * 0x1p-53; };
  while (y.size() < 200000 || y.size() % 16 != 0) {
    y.push_back(static_cast<T>(uniform(-1, 1) * std::exp2(uniform(-9, 9))));
    x.push_back(static_cast<T>(uniform(-1, 1)));
  }
  std::vector<T> out(y.size());
  kernel.run(out.data(), y.data(), x.data(), static_cast<int64_t>(y.size()));
  double worst = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const Exact want = std::atan2(Exact(y[i]), Exact(x[i]));
    if (!same_kind(out[i], want)) FAIL_CHECK(fmt::format("atan2({}, {}) = {}, not {}", y[i], x[i], out[i], want));
    const double off = std::isnan(want) ? 0 : ulps(out[i], want, want);
    if (off > worst && off > 2) MESSAGE(fmt::format("atan2({}, {}) = {}, not {}", y[i], x[i], out[i], want));
    worst = std::max(worst, off);
  }
  MESSAGE(fmt::format("atan2 {}: {:.3f} ulp", sizeof(T) == 4 ? "float" : "double", worst));
  CHECK(worst <= (sizeof(T) == 4 ? 1 : 2));
}
