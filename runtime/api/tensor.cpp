// SPDX-License-Identifier: Apache-2.0
#include <einc/tensor.h>
#include <fmt/format.h>

#include <cstring>

#include "runtime/api/guard.h"
#include "runtime/base/float_format.h"

namespace einc {
namespace {

int64_t product(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

template <class Stored>
double element(const std::byte* at) {
  Stored x;
  std::memcpy(&x, at, sizeof x);
  return static_cast<double>(x);
}

double number_at(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::f64:
      return element<double>(at);
    case DType::real:
    case DType::f32:
      return element<float>(at);
    case DType::bf16:
    case DType::f16: {
      uint16_t bits;
      std::memcpy(&bits, at, sizeof bits);
      return decode_float(dtype, bits);
    }
    case DType::f8e4m3:
    case DType::f8e5m2:
      return decode_float(dtype, static_cast<uint8_t>(*at));
    case DType::i64:
      return element<int64_t>(at);
    case DType::i32:
      return element<int32_t>(at);
    case DType::u16:
      return element<uint16_t>(at);
    case DType::u8:
    case DType::boolean:
      return element<uint8_t>(at);
  }
  return 0;
}

}  // namespace

int64_t TensorInfo::count() const { return product(shape); }
int64_t TensorInfo::bytes() const { return count() * bytes_of(dtype); }

int64_t TensorView::count() const { return product(shape_); }
int64_t TensorView::bytes() const { return count() * bytes_of(dtype_); }

std::vector<double> TensorView::to_doubles() const {
  if (data_ == nullptr && count() > 0) throw_null_view();
  std::vector<double> numbers(static_cast<size_t>(count()));
  const auto* at = static_cast<const std::byte*>(data_);
  for (double& number : numbers) number = number_at(dtype_, at), at += bytes_of(dtype_);
  return numbers;
}

void throw_null_view() { throw Error(ErrorKind::usage, "the tensor's memory lies at the null address"); }

void throw_wrong_type(DType dtype, DType asked) {
  throw Error(ErrorKind::usage, fmt::format("the tensor holds {}, not {}", to_string(dtype), to_string(asked)));
}

}  // namespace einc
