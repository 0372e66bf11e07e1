// SPDX-License-Identifier: Apache-2.0
// Functions of the prelude against the processor's in more digits.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/cuda/device/run_kernel.h"

namespace einc {
namespace {

struct Function {
  const char* call;
  std::function<long double(long double)> of;
  double least = -8, largest = 8;
};

long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }

std::vector<Function> functions() {
  using R = long double;
  return {
      {"exp_of(x)", [](R x) { return std::exp(x); }, -80, 80},
      {"expm1_of(x)", [](R x) { return std::expm1(x); }},
      {"log_of(x)", [](R x) { return std::log(x); }, 1e-30, 1e3},
      {"log1p_of(x)", [](R x) { return std::log1p(x); }, -0.99, 10},
      {"sqrt_of(x)", [](R x) { return std::sqrt(x); }, 0, 1e6},
      {"rsqrt_of(x)", [](R x) { return 1 / std::sqrt(x); }, 1e-6, 1e6},
      {"sin_of(x)", [](R x) { return std::sin(x); }, 0.1, 3},
      {"cos_of(x)", [](R x) { return std::cos(x); }, -1.5, 1.5},
      {"tanh_of(x)", [](R x) { return std::tanh(x); }},
      {"erf_of(x)", [](R x) { return std::erf(x); }},
      {"erfc_of(x)", [](R x) { return std::erfc(x); }, -6, 6},
      {"tan_of(x)", [](R x) { return std::tan(x); }, -1.5, 1.5},
      {"asin_of(x)", [](R x) { return std::asin(x); }, -1, 1},
      {"acos_of(x)", [](R x) { return std::acos(x); }, -1, 0.9},
      {"atan_of(x)", [](R x) { return std::atan(x); }},
      {"atan2_of(x, T(-0.75))", [](R x) { return std::atan2(x, R(-0.75L)); }},
      {"sinh_of(x)", [](R x) { return std::sinh(x); }},
      {"cosh_of(x)", [](R x) { return std::cosh(x); }},
      {"lgamma_of(x)", [](R x) { return std::lgamma(x); }, 2.5, 40},
      {"floor_of(x)", [](R x) { return std::floor(x); }},
      {"ceil_of(x)", [](R x) { return std::ceil(x); }},
      {"round_of(x)", [](R x) { return std::nearbyint(x); }},
      {"trunc_of(x)", [](R x) { return std::trunc(x); }},
      {"log_add(x, T(0.5))", [](R x) { return std::log(std::exp(x) + std::exp(R(0.5L))); }},
      {"erf_of(erfinv_of(x))", [](R x) { return x; }, -0.99, 0.99},
      {"pow_of(x, T(1.7))", [](R x) { return std::pow(x, R(1.7L)); }, 0, 100},
      {"sigmoid_of(x)", sigmoid},
      {"silu_of(x)", [](R x) { return x * sigmoid(x); }},
      {"gelu_of(x)", [](R x) { return x * std::erfc(-x * std::sqrt(R(0.5L))) / 2; }, -5, 8},
      {"gelu_tanh_of(x)", [](R x) { return x * sigmoid(R(1.5957691216057308L) * (x + R(0.044715L) * x * x * x)); }, -4, 8},
      {"softplus_of(x)", [](R x) { return std::log1p(std::exp(x)); }},
      {"sign_of(x)", [](R x) { return R((x > 0) - (x < 0)); }},
      {"relu_of(x)", [](R x) { return x < 0 ? 0 : x; }},
      {"abs_of(x)", [](R x) { return std::fabs(x); }},
  };
}

template <class T>
void check(const Function& function, DType dtype, double tolerance) {
  std::vector<T> values;
  constexpr int kCount = 4000;
  for (int i = 0; i <= kCount; ++i) values.push_back(static_cast<T>(function.least + (function.largest - function.least) * i / kCount));
  const std::string name(function.call, std::strchr(function.call, '('));
  const std::string type = element_type(dtype);
  const auto results = for_each_element(name + "_" + type, "typedef " + type + " T;\nconst T x = x0[i];\ny0[i] = " + function.call + ";",
                                        {array_of(dtype, values)}, {{dtype, kCount + 1}});
  const std::vector<T> got = elements_of<T>(results[0]);
  double largest = 0;
  T at = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const long double argument = name == "pow_of" ? static_cast<long double>(values[i]) : values[i];
    const long double wanted = function.of(argument);
    const auto error = static_cast<double>(std::fabs(got[i] - wanted) / std::max(std::fabs(wanted), 1e-30L));
    if (error > largest || std::isnan(error)) largest = error, at = values[i];
    if (std::isnan(error)) break;
  }
  CAPTURE(function.call);
  CAPTURE(type);
  CAPTURE(at);
  CHECK(largest <= tolerance);
}

}  // namespace

TEST_CASE("elementary functions") {
  for (const Function& function : functions()) {
    check<float>(function, DType::f32, 5e-6);
    check<double>(function, DType::f64, 2e-14);
  }
}

TEST_CASE("the processor's own power of two, of whole numbers, fractions and the ends") {
  std::vector<float> values{-std::numeric_limits<float>::infinity(), -1000, 0, std::numeric_limits<float>::infinity(), 127};
  for (int i = 0; i <= 4000; ++i) values.push_back(-125 + static_cast<float>(i) / 16);
  const auto results = for_each_element("power_of_two", "y0[i] = exp2_short(x0[i]);", {array_of(DType::f32, values)},
                                        {{DType::f32, static_cast<int64_t>(values.size())}});
  const std::vector<float> got = elements_of<float>(results[0]);
  CHECK(got[0] == 0);
  CHECK(got[1] == 0);
  CHECK(got[2] == 1);
  CHECK(std::isinf(got[3]));
  for (size_t i = 4; i < values.size(); ++i) {
    const double wanted = std::exp2(static_cast<double>(values[i]));
    if (wanted > std::numeric_limits<float>::max()) continue;
    CAPTURE(values[i]);
    CHECK(std::fabs(got[i] - wanted) <= 0x1p-21 * wanted);
  }
}

TEST_CASE("integers wrap") {
  const std::vector<int32_t> x{0, 1, -1, 7, 2147483647, -2147483647 - 1, 65537, -12345};
  const auto results = for_each_element(
      "wrap",
      "const i32 a = x0[i], b = x0[(i + 3) % count];\ny0[i] = add(a, b);\ny1[i] = sub(a, b);\ny2[i] = mul(a, b);\n"
      "y3[i] = abs_of(a);\ny4[i] = mul(i64(a), i64(b) * (1 << 20));\ny5[i] = whole_power(a, 5);",
      {array_of(DType::i32, x)}, {{DType::i32, 8}, {DType::i32, 8}, {DType::i32, 8}, {DType::i32, 8}, {DType::i64, 8}, {DType::i32, 8}});
  for (size_t i = 0; i < x.size(); ++i) {
    const auto a = static_cast<uint32_t>(x[i]), b = static_cast<uint32_t>(x[(i + 3) % 8]);
    CHECK(elements_of<uint32_t>(results[0])[i] == a + b);
    CHECK(elements_of<uint32_t>(results[1])[i] == a - b);
    CHECK(elements_of<uint32_t>(results[2])[i] == a * b);
    CHECK(elements_of<uint32_t>(results[3])[i] == (x[i] < 0 ? 0u - a : a));
    const auto wide = [](int32_t v) { return static_cast<uint64_t>(int64_t{v}); };
    CHECK(elements_of<uint64_t>(results[4])[i] == wide(x[i]) * (wide(x[(i + 3) % 8]) << 20));
    CHECK(elements_of<uint32_t>(results[5])[i] == a * a * a * a * a);
  }
}

TEST_CASE("integers are divided towards -infinity") {
  const std::vector<int32_t> x{7, -7, 7, -7, 6, -2147483647 - 1, 0, 5}, by{2, 2, -2, -2, -3, -1, 9, -8};
  const auto results =
      for_each_element("divided",
                       "y0[i] = floor_divide(x0[i], x1[i]);\ny1[i] = floor_remainder(x0[i], x1[i]);\ny2[i] = floor_divide(i64(x0[i]) * (1 "
                       "<< 20), i64(x1[i]));",
                       {array_of(DType::i32, x), array_of(DType::i32, by)}, {{DType::i32, 8}, {DType::i32, 8}, {DType::i64, 8}});
  const std::vector<int32_t> quotients{3, -4, -4, 3, -2, -2147483647 - 1, 0, -1}, rests{1, 1, -1, -1, 0, 0, 0, -3};
  CHECK(elements_of<int32_t>(results[0]) == quotients);
  CHECK(elements_of<int32_t>(results[1]) == rests);
  CHECK(elements_of<int64_t>(results[2])[7] == -655360);
}

TEST_CASE("extremes: NaN wins, and the first of equals") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{1, 2, nan, 2, -1, nan, 0, 1};
  const auto results =
      for_each_element("extremes",
                       "const f32 a = x0[i / 8], b = x0[i % 8];\ny0[i] = larger(a, b);\ny1[i] = smaller(a, b);\n"
                       "y2[i] = comes_first_as_largest(a, i / 8, b, i % 8) + 2 * comes_first_as_least(a, i / 8, b, i % 8);",
                       {array_of(DType::f32, x)}, {{DType::f32, 64}, {DType::f32, 64}, {DType::i32, 64}});
  for (size_t i = 0; i < 64; ++i) {
    const float a = x[i / 8], b = x[i % 8];
    const bool none = std::isnan(a) || std::isnan(b);
    const float larger = elements_of<float>(results[0])[i], smaller = elements_of<float>(results[1])[i];
    CHECK((none ? std::isnan(larger) : larger == std::max(a, b)));
    CHECK((none ? std::isnan(smaller) : smaller == std::min(a, b)));
    const bool earlier = i / 8 < i % 8, both_nan = std::isnan(a) && std::isnan(b);
    const bool largest = std::isnan(a) != std::isnan(b) ? std::isnan(a) : both_nan || a == b ? earlier : a > b;
    const bool least = std::isnan(a) != std::isnan(b) ? std::isnan(a) : both_nan || a == b ? earlier : a < b;
    CHECK(elements_of<int32_t>(results[2])[i] == largest + 2 * least);
  }
}

}  // namespace einc
