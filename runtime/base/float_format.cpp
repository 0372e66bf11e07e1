// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/float_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/base/check.h"

namespace einc {
namespace {

bool has_infinity(DType dtype) { return dtype != DType::f8e4m3; }

double overflow(DType dtype, double sign) {
  return has_infinity(dtype) ? std::copysign(std::numeric_limits<double>::infinity(), sign) : std::numeric_limits<double>::quiet_NaN();
}

int lowest_exponent(const DTypeInfo& format) { return 2 - (1 << (format.exponent_bits - 1)); }

}  // namespace

double round_to_format(DType dtype, double x) {
  if (dtype == DType::f64 || !is_floating(dtype)) return x;
  if (dtype == DType::f32 || dtype == DType::real) return static_cast<float>(x);
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return overflow(dtype, x);
  const DTypeInfo& format = info(dtype);
  int exponent = 0;
  std::frexp(x, &exponent);  // |x| in [2^(exponent-1), 2^exponent)
  const int quantum = std::max(exponent - 1, lowest_exponent(format)) - format.mantissa_bits;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -quantum)), quantum);
  return std::fabs(rounded) > format.largest ? overflow(dtype, x) : rounded;
}

bool can_hold(DType dtype, double x) { return !std::isfinite(x) || std::isfinite(round_to_format(dtype, x)); }

uint16_t encode_float(DType dtype, double x) {
  const DTypeInfo& format = info(dtype);
  EINC_CHECK(format.exponent_bits > 0 && format.bits <= 16, "no short bit pattern for {}", format.name);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int top = (1 << format.exponent_bits) - 1;
  const int sign = std::signbit(x) ? 1 << (format.bits - 1) : 0;
  const double value = std::fabs(round_to_format(dtype, x));
  if (std::isnan(value)) {
    const int fraction = has_infinity(dtype) ? 1 << (format.mantissa_bits - 1) : (1 << format.mantissa_bits) - 1;
    return static_cast<uint16_t>(sign | top << format.mantissa_bits | fraction);
  }
  if (std::isinf(value)) return static_cast<uint16_t>(sign | top << format.mantissa_bits);
  if (value < format.smallest_normal)  // subnormal: a multiple of the smallest one
    return static_cast<uint16_t>(sign | static_cast<int>(std::ldexp(value, format.mantissa_bits - lowest_exponent(format))));
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent) * 2 - 1;
  return static_cast<uint16_t>(sign | (exponent - 1 + bias) << format.mantissa_bits |
                               static_cast<int>(std::ldexp(fraction, format.mantissa_bits)));
}

double decode_float(DType dtype, uint16_t bits) {
  const DTypeInfo& format = info(dtype);
  EINC_CHECK(format.exponent_bits > 0 && format.bits <= 16, "no short bit pattern for {}", format.name);
  const int top = (1 << format.exponent_bits) - 1;
  const double sign = bits >> (format.bits - 1) & 1 ? -1 : 1;
  const int exponent = bits >> format.mantissa_bits & top;
  const int fraction = bits & ((1 << format.mantissa_bits) - 1);
  if (exponent == top && has_infinity(dtype))
    return sign * (fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN());
  if (exponent == top && fraction == (1 << format.mantissa_bits) - 1) return std::numeric_limits<double>::quiet_NaN();
  const int shift = lowest_exponent(format) - format.mantissa_bits;
  if (exponent == 0) return sign * std::ldexp(fraction, shift);
  return sign * std::ldexp(fraction + (1 << format.mantissa_bits), shift + exponent - 1);
}

void store_number(DType dtype, double x, std::byte* out) {
  const auto put = [&](auto element) { std::memcpy(out, &element, sizeof element); };
  switch (dtype) {
    case DType::f64:
      return put(x);
    case DType::real:
    case DType::f32:
      return put(static_cast<float>(x));
    case DType::bf16:
    case DType::f16:
      return put(encode_float(dtype, x));
    case DType::f8e4m3:
    case DType::f8e5m2:
      return put(static_cast<uint8_t>(encode_float(dtype, x)));
    case DType::i64:
      return put(static_cast<int64_t>(x));
    case DType::i32:
      return put(static_cast<int32_t>(x));
    case DType::u16:
      return put(static_cast<uint16_t>(x));
    case DType::u8:
      return put(static_cast<uint8_t>(x));
    case DType::boolean:
      return put(static_cast<uint8_t>(x != 0));
  }
}

}  // namespace einc
