// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "runtime/base/check.h"

namespace einc {
namespace {

int64_t elements(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

std::pair<int64_t, int64_t> integer_range(DType dtype) {
  if (dtype == DType::i64) return {INT64_MIN, INT64_MAX};
  const auto largest = static_cast<int64_t>(info(dtype).largest);
  return {dtype == DType::i32 ? -largest - 1 : 0, largest};
}

int64_t to_integer(DType dtype, double x) {
  if (dtype == DType::boolean) return x != 0 ? 1 : 0;
  if (std::isnan(x)) return 0;
  const auto [low, high] = integer_range(dtype);
  if (x <= static_cast<double>(low)) return low;
  if (x >= static_cast<double>(high)) return high;
  return static_cast<int64_t>(x);
}

}  // namespace

Tensor Tensor::zeros(DType dtype, std::vector<int64_t> shape) {
  Tensor t{dtype, std::move(shape), {}, {}};
  const auto n = static_cast<size_t>(elements(t.shape));
  if (t.is_real())
    t.reals.resize(n);
  else
    t.ints.resize(n);
  return t;
}

Tensor Tensor::of_reals(std::vector<int64_t> shape, std::vector<double> values, DType dtype) {
  EINC_CHECK(elements(shape) == static_cast<int64_t>(values.size()) && is_floating(dtype), "{} values for another shape", values.size());
  return {dtype, std::move(shape), std::move(values), {}};
}

Tensor Tensor::of_ints(std::vector<int64_t> shape, std::vector<int64_t> values, DType dtype) {
  EINC_CHECK(elements(shape) == static_cast<int64_t>(values.size()) && !is_floating(dtype), "{} values for another shape", values.size());
  return {dtype, std::move(shape), {}, std::move(values)};
}

int64_t wrap_integer(DType dtype, int64_t x) {
  if (dtype == DType::boolean) return x != 0 ? 1 : 0;
  if (dtype == DType::i32) return static_cast<int32_t>(x);
  if (dtype == DType::u16) return static_cast<uint16_t>(x);
  if (dtype == DType::u8) return static_cast<uint8_t>(x);
  return x;
}

Tensor convert(const Tensor& tensor, DType dtype) {
  Tensor out = Tensor::zeros(dtype, tensor.shape);
  const auto n = static_cast<size_t>(tensor.count());
  for (size_t i = 0; i < n; ++i) {
    if (out.is_real())
      out.reals[i] = tensor.real_at(static_cast<int64_t>(i));
    else
      out.ints[i] = tensor.is_real() ? to_integer(dtype, tensor.reals[i]) : wrap_integer(dtype, tensor.ints[i]);
  }
  return out;
}

std::vector<int64_t> row_major_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

std::string describe_position(std::span<const int64_t> shape, int64_t index) {
  std::vector<int64_t> place(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    place[i] = index % shape[i];
    index /= shape[i];
  }
  return fmt::format("[{}]", fmt::join(place, ", "));
}

}  // namespace einc
