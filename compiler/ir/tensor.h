// SPDX-License-Identifier: Apache-2.0
// A tensor of the interpreter: shape and row-major elements, as doubles for floating dtypes and as 64-bit integers for the
// others (bool as 0 and 1), whatever the storage format of its dtype.
#pragma once
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/host_array.h"
#include "runtime/base/name.h"

namespace einc {

struct Tensor {
  DType dtype = DType::real;
  std::vector<int64_t> shape;
  std::vector<double> reals;  // when is_floating(dtype)
  std::vector<int64_t> ints;  // otherwise

  bool is_real() const { return is_floating(dtype); }
  int64_t count() const { return static_cast<int64_t>(is_real() ? reals.size() : ints.size()); }
  double real_at(int64_t i) const { return is_real() ? reals[static_cast<size_t>(i)] : static_cast<double>(ints[static_cast<size_t>(i)]); }

  static Tensor zeros(DType dtype, std::vector<int64_t> shape);
  static Tensor of_reals(std::vector<int64_t> shape, std::vector<double> values, DType dtype = DType::real);
  static Tensor of_ints(std::vector<int64_t> shape, std::vector<int64_t> values, DType dtype = DType::i32);
};

using TensorMap = std::unordered_map<Name, Tensor>;

// The integer dtype's value that x becomes: modulo 2^bits; bool: x != 0.
int64_t wrap_integer(DType dtype, int64_t x);
// Elements converted as by the op cast: real to integer goes towards zero, stops at the dtype's ends, NaN gives 0.
Tensor convert(const Tensor& tensor, DType dtype);

// `real` is stored as f32.
Tensor from_host(const HostArray& array);
HostArray to_host(const Tensor& tensor);

std::vector<int64_t> row_major_strides(std::span<const int64_t> shape);
// "[3, 0, 7]": the place of element `index`.
std::string describe_position(std::span<const int64_t> shape, int64_t index);

}  // namespace einc
