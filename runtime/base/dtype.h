// SPDX-License-Identifier: Apache-2.0
// Element types and what every layer may ask of them. `real` is a placeholder that the precision policy replaces.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace einc {

enum class DType : uint8_t { real, f64, f32, bf16, f16, f8e4m3, f8e5m2, i64, i32, u16, u8, boolean };

struct DTypeInfo {
  std::string_view name;
  int bits;           // storage bits; `real` counts as f32 (32)
  int exponent_bits;  // 0 for integers
  int mantissa_bits;  // explicit fraction bits; 0 for integers
  double largest;     // largest finite value
  double smallest_normal;
  double epsilon;  // distance from 1 to the next value
};

const DTypeInfo& info(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);
inline std::string_view to_string(DType d) { return info(d).name; }
// "f32[2 3]": of a value with these sizes.
std::string type_text(DType dtype, std::span<const int64_t> shape);
inline int bytes_of(DType d) { return info(d).bits / 8; }
inline bool is_floating(DType d) { return d <= DType::f8e5m2; }
inline bool is_integer(DType d) { return d >= DType::i64 && d <= DType::u8; }

// The dtype of an elementwise result of two tensors: bool < u8, u16 < i32 < i64 < floating; the wider float wins, bf16
// with f16 (or the two fp8 formats) gives f32 (f16 for fp8); u8 with u16 gives u16. `real` beside an explicit float
// narrower than or equal to f32 gives real; beside f64 gives f64.
DType promote(DType a, DType b);

}  // namespace einc
