// SPDX-License-Identifier: Apache-2.0
// What max and min of nothing are: an infinity where the dtype has one, else its end.
#pragma once
#include <cstdint>
#include <limits>

#include "compiler/ir/op.h"
#include "runtime/base/dtype.h"

namespace einc {

inline double reduction_identity(DType dtype, ReduceFn fn) {
  const double end = dtype == DType::f8e4m3 ? info(dtype).largest : std::numeric_limits<double>::infinity();
  return fn == ReduceFn::max ? -end : end;
}

inline int64_t integer_identity(DType dtype, ReduceFn fn) {
  const bool most = fn == ReduceFn::max;
  switch (dtype) {
    case DType::i64:
      return most ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
    case DType::i32:
      return most ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int32_t>::max();
    case DType::u16:
      return most ? 0 : std::numeric_limits<uint16_t>::max();
    case DType::u8:
      return most ? 0 : std::numeric_limits<uint8_t>::max();
    case DType::boolean:
      return most ? 0 : 1;
    case DType::real:
    case DType::f64:
    case DType::f32:
    case DType::bf16:
    case DType::f16:
    case DType::f8e4m3:
    case DType::f8e5m2:
      break;
  }
  return 0;  // of no integer
}

}  // namespace einc
