// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/convert_row.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/float_format.h"

namespace einc {
namespace {

// Storage of the formats that C++ has no type for.
struct HalfPrecision {
  uint16_t bits;
};
struct Truth {
  uint8_t byte;
};

// Calls visit(Stored{}) with the type that an element of the dtype is read as: dtypes of .npy files.
template <class Visit>
auto visit_stored(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::f64:
      return visit(double{});
    case DType::real:
    case DType::f32:
      return visit(float{});
    case DType::f16:
      return visit(HalfPrecision{});
    case DType::i64:
      return visit(int64_t{});
    case DType::i32:
      return visit(int32_t{});
    case DType::u16:
      return visit(uint16_t{});
    case DType::u8:
      return visit(uint8_t{});
    case DType::boolean:
      return visit(Truth{});
    case DType::bf16:
    case DType::f8e4m3:
    case DType::f8e5m2:
      break;
  }
  EINC_CHECK(false, "no .npy file holds {}", to_string(dtype));
  return visit(float{});
}

template <class Stored>
Stored load(std::span<const std::byte> from, size_t position) {
  Stored value;
  std::memcpy(&value, from.data() + position * sizeof value, sizeof value);
  return value;
}

double number(HalfPrecision half) { return decode_float(DType::f16, half.bits); }
int64_t number(Truth truth) { return truth.byte != 0 ? 1 : 0; }
template <class Stored>
Stored number(Stored value) {
  return value;
}

template <class Stored, class Wanted>
std::optional<size_t> convert_to(std::span<const std::byte> from, std::byte* out) {
  for (size_t i = 0; i < from.size() / sizeof(Stored); ++i) {
    const auto value = number(load<Stored>(from, i));
    const auto converted = static_cast<Wanted>(value);
    if constexpr (std::is_integral_v<Wanted>) {
      if (!std::in_range<Wanted>(value)) return i;
    } else if constexpr (std::is_same_v<Wanted, float> && std::is_same_v<Stored, double>) {
      if (std::isinf(converted) && !std::isinf(value)) return i;
    }
    std::memcpy(out + i * sizeof converted, &converted, sizeof converted);
  }
  return std::nullopt;
}

template <class Stored>
std::optional<size_t> convert_slowly(std::span<const std::byte> from, std::byte* out, DType to) {
  for (size_t i = 0; i < from.size() / sizeof(Stored); ++i) {
    const auto value = static_cast<double>(number(load<Stored>(from, i)));
    if (!can_hold(to, value)) return i;
    store_number(to, value, out + i * static_cast<size_t>(bytes_of(to)));
  }
  return std::nullopt;
}

template <class Stored>
std::optional<size_t> convert_from(std::span<const std::byte> from, std::byte* out, DType to) {
  if (to == DType::f32 || to == DType::real) return convert_to<Stored, float>(from, out);
  if (to == DType::f64) return convert_to<Stored, double>(from, out);
  if (is_floating(to) || to == DType::boolean) return convert_slowly<Stored>(from, out, to);
  if constexpr (std::is_integral_v<decltype(number(Stored{}))>) {
    if (to == DType::i64) return convert_to<Stored, int64_t>(from, out);
    if (to == DType::i32) return convert_to<Stored, int32_t>(from, out);
    if (to == DType::u16) return convert_to<Stored, uint16_t>(from, out);
    if (to == DType::u8) return convert_to<Stored, uint8_t>(from, out);
  }
  EINC_CHECK(false, "floats are given to {}", to_string(to));
  return std::nullopt;
}

}  // namespace

std::optional<size_t> convert_row(std::span<const std::byte> from, DType dtype, std::byte* out, DType to) {
  if (dtype == to && dtype != DType::boolean) {
    std::memcpy(out, from.data(), from.size());
    return std::nullopt;
  }
  return visit_stored(dtype, [&](auto stored) { return convert_from<decltype(stored)>(from, out, to); });
}

std::string number_at(std::span<const std::byte> from, DType dtype, size_t position) {
  return visit_stored(dtype, [&](auto stored) { return fmt::format("{}", number(load<decltype(stored)>(from, position))); });
}

}  // namespace einc
