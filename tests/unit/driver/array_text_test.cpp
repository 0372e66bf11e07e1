// SPDX-License-Identifier: Apache-2.0
// Arrays by rows, as NumPy prints them; a single row has no brackets.
#include "compiler/driver/array_text.h"

#include <doctest/doctest.h>

#include <limits>
#include <numeric>

using namespace einc;

namespace {

Tensor counting(std::vector<int64_t> shape) {
  Tensor tensor;
  tensor.dtype = DType::f32;
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.reals.resize(static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())));
  std::iota(tensor.reals.begin(), tensor.reals.end(), 0.0);
  return tensor;
}

}  // namespace

TEST_CASE("a row is a line, and columns line up") {
  CHECK(array_text(counting({})) == "0");
  CHECK(array_text(counting({3})) == "0. 1. 2.");
  CHECK(array_text(counting({2, 6})) == "[[ 0.  1.  2.  3.  4.  5.]\n [ 6.  7.  8.  9. 10. 11.]]");
  CHECK(array_text(counting({2, 1, 2})) == "[[[0. 1.]]\n\n [[2. 3.]]]");
}

TEST_CASE("numbers have eight digits") {
  Tensor tensor = counting({2});
  tensor.reals = {static_cast<double>(0.1f), 1.0 / 3};
  CHECK(array_text(tensor) == "0.1 0.33333334");
}

TEST_CASE("matrices are written as NumPy writes them") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  struct Case {
    DType dtype;
    std::vector<int64_t> shape;
    std::vector<double> values;
    const char* text;  // of print() in NumPy 2.4.6
  };
  const Case cases[] = {
      {DType::f32, {2, 2}, {1.0, 2.5, 10.0, -0.25}, "[[ 1.    2.5 ]\n [10.   -0.25]]"},
      {DType::f32, {2, 2}, {0.3333333432674408, 33.33333206176758, 0.0, 1.0}, "[[ 0.33333334 33.333332  ]\n [ 0.          1.        ]]"},
      {DType::f32, {2, 2}, {9.999999747378752e-05, 1.0, 2.0, 3.0}, "[[1.e-04 1.e+00]\n [2.e+00 3.e+00]]"},
      {DType::f32,
       {2, 2},
       {9.999999747378752e-06, 1.9999999494757503e-05, 3.2500000088475645e-05, -1.0},
       "[[ 1.00e-05  2.00e-05]\n [ 3.25e-05 -1.00e+00]]"},
      {DType::f32, {2, 2}, {kNan, 1.5, kInfinity, -2.0}, "[[ nan  1.5]\n [ inf -2. ]]"},
      {DType::f32, {1, 2}, {-kInfinity, kNan}, "[[-inf  nan]]"},
      {DType::f32, {1, 2}, {0.0, -0.0}, "[[ 0. -0.]]"},
      {DType::f32, {1, 2}, {123456.7890625, 999.5}, "[[123456.79    999.5 ]]"},
      {DType::f32, {1, 2}, {1000000.0, 100000.0}, "[[1.e+06 1.e+05]]"},
      {DType::f32, {1, 2}, {1.0000000200408773e+20, 1.500000053056283e-07}, "[[1.0e+20 1.5e-07]]"},
      {DType::f32, {1, 2}, {0.012345679104328156, 0.5}, "[[0.01234568 0.5       ]]"},
      {DType::f32,
       {2, 2},
       {1.234567861274627e-07, kNan, 5.0, -2.999999894026671e+30},
       "[[ 1.2345679e-07            nan]\n [ 5.0000000e+00 -2.9999999e+30]]"},
      {DType::f64,
       {2, 2},
       {0.3333333333333333, 33.333333333333336, 333.3333333333333, 0.5},
       "[[  0.33333333  33.33333333]\n [333.33333333   0.5       ]]"},
      {DType::f64, {1, 2}, {1e+100, 1.0}, "[[1.e+100 1.e+000]]"},
      {DType::f64, {1, 2}, {10000000.0, 1000000.3333333334}, "[[10000000.          1000000.33333333]]"},
      {DType::f64, {1, 2}, {0.1, 1000.0}, "[[1.e-01 1.e+03]]"},
      {DType::f64, {2, 2}, {-1e-300, 1.0, 2.0, kInfinity}, "[[-1.e-300  1.e+000]\n [ 2.e+000      inf]]"},
      {DType::f16, {1, 2}, {0.5, 2000.0}, "[[5.e-01 2.e+03]]"},
      {DType::f32, {2, 2, 1}, {0.5, 2.0, -1.0, 100.0}, "[[[  0.5]\n  [  2. ]]\n\n [[ -1. ]\n  [100. ]]]"},
  };
  for (const Case& c : cases) {
    Tensor tensor = counting(c.shape);
    tensor.dtype = c.dtype;
    tensor.reals.assign(c.values.begin(), c.values.end());
    CHECK(array_text(tensor) == c.text);
  }
}

TEST_CASE("long axes are shown by their ends") {
  CHECK(array_text(counting({2000})) == "0.000e+00 1.000e+00 2.000e+00 ... 1.997e+03 1.998e+03 1.999e+03");
  const std::string text = array_text(counting({100, 100}));
  CHECK(text.starts_with("[[0.000e+00 1.000e+00 2.000e+00 ... 9.700e+01 9.800e+01 9.900e+01]\n [1.000e+02 "));
  CHECK(text.find("\n ...\n") != std::string::npos);
  CHECK(text.ends_with("9.999e+03]]"));
}
