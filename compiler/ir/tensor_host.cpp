// SPDX-License-Identifier: Apache-2.0
// Interpreter tensors from and to arrays in their storage format.
#include <cstring>

#include "compiler/ir/tensor.h"
#include "runtime/base/check.h"
#include "runtime/base/float_format.h"

namespace einc {
namespace {

template <class Stored, class Values>
void load(const HostArray& array, Values& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    Stored x;
    std::memcpy(&x, array.bytes.data() + i * sizeof x, sizeof x);
    values[i] = x;
  }
}

template <class Stored, class Values>
void store(const Values& values, HostArray& array) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<Stored>(values[i]);
    std::memcpy(array.bytes.data() + i * sizeof x, &x, sizeof x);
  }
}

void load_short(const HostArray& array, std::vector<double>& values) {
  const auto width = static_cast<size_t>(bytes_of(array.dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, array.bytes.data() + i * width, width);
    values[i] = decode_float(array.dtype, bits);
  }
}

void store_short(const std::vector<double>& values, HostArray& array) {
  const auto width = static_cast<size_t>(bytes_of(array.dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = encode_float(array.dtype, values[i]);
    std::memcpy(array.bytes.data() + i * width, &bits, width);
  }
}

}  // namespace

Tensor from_host(const HostArray& array) {
  Tensor t = Tensor::zeros(array.dtype, array.shape);
  EINC_CHECK(static_cast<size_t>(t.count() * bytes_of(array.dtype)) == array.bytes.size(), "an array of {} bytes", array.bytes.size());
  switch (array.dtype) {
    case DType::f64:
      load<double>(array, t.reals);
      break;
    case DType::real:
    case DType::f32:
      load<float>(array, t.reals);
      break;
    case DType::bf16:
    case DType::f16:
    case DType::f8e4m3:
    case DType::f8e5m2:
      load_short(array, t.reals);
      break;
    case DType::i64:
      load<int64_t>(array, t.ints);
      break;
    case DType::i32:
      load<int32_t>(array, t.ints);
      break;
    case DType::u16:
      load<uint16_t>(array, t.ints);
      break;
    case DType::u8:
    case DType::boolean:
      load<uint8_t>(array, t.ints);
      break;
  }
  return t;
}

HostArray to_host(const Tensor& tensor) {
  HostArray array{tensor.dtype == DType::real ? DType::f32 : tensor.dtype, tensor.shape, {}};
  array.bytes.resize(static_cast<size_t>(tensor.count() * bytes_of(array.dtype)));
  switch (array.dtype) {
    case DType::f64:
      store<double>(tensor.reals, array);
      break;
    case DType::real:
    case DType::f32:
      store<float>(tensor.reals, array);
      break;
    case DType::bf16:
    case DType::f16:
    case DType::f8e4m3:
    case DType::f8e5m2:
      store_short(tensor.reals, array);
      break;
    case DType::i64:
      store<int64_t>(tensor.ints, array);
      break;
    case DType::i32:
      store<int32_t>(tensor.ints, array);
      break;
    case DType::u16:
      store<uint16_t>(tensor.ints, array);
      break;
    case DType::u8:
    case DType::boolean:
      store<uint8_t>(tensor.ints, array);
      break;
  }
  return array;
}

}  // namespace einc
