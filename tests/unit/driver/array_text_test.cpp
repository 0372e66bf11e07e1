// SPDX-License-Identifier: Apache-2.0
// Arrays by rows, as NumPy prints them; a single row has no brackets.
#include "compiler/driver/array_text.h"

#include <doctest/doctest.h>

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
  CHECK(array_text(counting({3})) == "0 1 2");
  CHECK(array_text(counting({2, 6})) == "[[ 0  1  2  3  4  5]\n [ 6  7  8  9 10 11]]");
  CHECK(array_text(counting({2, 1, 2})) == "[[[0 1]]\n\n [[2 3]]]");
}

TEST_CASE("numbers have eight digits") {
  Tensor tensor = counting({2});
  tensor.reals = {static_cast<double>(0.1f), 1.0 / 3};
  CHECK(array_text(tensor) == "0.1 0.33333333");
}

TEST_CASE("long axes are shown by their ends") {
  CHECK(array_text(counting({2000})) == "0 1 2 ... 1997 1998 1999");
  const std::string text = array_text(counting({100, 100}));
  CHECK(text.starts_with("[[   0    1    2 ...   97   98   99]\n [ 100 "));
  CHECK(text.find("\n ...\n") != std::string::npos);
  CHECK(text.ends_with("9999]]"));
}
