// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/dtype.h"

#include <array>

namespace einc {
namespace {

constexpr std::array<DTypeInfo, 12> kInfo{{
    {"real", 32, 8, 23, 3.4028234663852886e38, 1.1754943508222875e-38, 1.1920928955078125e-07},
    {"f64", 64, 11, 52, 1.7976931348623157e308, 2.2250738585072014e-308, 2.220446049250313e-16},
    {"f32", 32, 8, 23, 3.4028234663852886e38, 1.1754943508222875e-38, 1.1920928955078125e-07},
    {"bf16", 16, 8, 7, 3.3895313892515355e38, 1.1754943508222875e-38, 0.0078125},
    {"f16", 16, 5, 10, 65504, 6.103515625e-05, 0.0009765625},
    {"f8e4m3", 8, 4, 3, 448, 0.015625, 0.125},
    {"f8e5m2", 8, 5, 2, 57344, 6.103515625e-05, 0.25},
    {"i64", 64, 0, 0, 9223372036854775807.0, 1, 1},
    {"i32", 32, 0, 0, 2147483647, 1, 1},
    {"u16", 16, 0, 0, 65535, 1, 1},
    {"u8", 8, 0, 0, 255, 1, 1},
    {"bool", 8, 0, 0, 1, 1, 1},
}};

int integer_rank(DType d) {
  switch (d) {
    case DType::boolean:
      return 0;
    case DType::u8:
      return 1;
    case DType::u16:
      return 2;
    case DType::i32:
      return 3;
    case DType::i64:
      return 4;
    default:
      return -1;
  }
}

}  // namespace

const DTypeInfo& info(DType dtype) { return kInfo[static_cast<size_t>(dtype)]; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (size_t i = 1; i < kInfo.size(); ++i)  // `real` is no name a file may write
    if (kInfo[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

std::string type_text(DType dtype, std::span<const int64_t> shape) {
  std::string text(to_string(dtype));
  text += '[';
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : " ") + std::to_string(shape[i]);
  return text + ']';
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  const bool fa = is_floating(a), fb = is_floating(b);
  if (!fa && !fb) return integer_rank(a) > integer_rank(b) ? a : b;
  if (!fa) return b;
  if (!fb) return a;
  if (a == DType::f64 || b == DType::f64) return DType::f64;
  if (a == DType::real || b == DType::real) return DType::real;
  if (bytes_of(a) != bytes_of(b)) return bytes_of(a) > bytes_of(b) ? a : b;
  return bytes_of(a) == 1 ? DType::f16 : DType::f32;  // two different formats of one width: the next one that holds both
}

}  // namespace einc
