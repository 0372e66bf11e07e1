// SPDX-License-Identifier: Apache-2.0
// Conversions between registers and storage, as the CPU's emitter makes them.
#include <cmath>

#include "compiler/codegen/cuda/value_text.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

bool small_float(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }

std::string_view to_storage(DType dtype) {
  return dtype == DType::bf16 ? "to_bf16" : dtype == DType::f16 ? "to_f16" : dtype == DType::f8e4m3 ? "to_e4m3" : "to_e5m2";
}

}  // namespace

DType register_dtype(DType dtype) {
  if (dtype == DType::real || small_float(dtype)) return DType::f32;
  if (dtype == DType::u8 || dtype == DType::u16) return DType::i32;
  return dtype;
}

std::string_view register_type(DType dtype) {
  switch (register_dtype(dtype)) {
    case DType::f64:
      return "f64";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::boolean:
      return "bool";
    default:
      return "f32";
  }
}

std::string_view storage_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "f64";
    case DType::real:
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::f8e4m3:
      return "e4m3";
    case DType::f8e5m2:
      return "e5m2";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::u16:
      return "u16";
    case DType::u8:
    case DType::boolean:
      return "u8";
  }
  return "";
}

std::string literal(int64_t value) {
  if (value == INT64_MIN) return "(-0x7FFFFFFFFFFFFFFFll - 1)";
  const bool fits = value >= -INT32_MAX && value <= INT32_MAX;
  const std::string text = fits ? std::to_string(value) : fmt::format("{}ll", value);
  return value < 0 ? "(" + text + ")" : text;
}

std::string literal_of(double value, DType dtype) {
  const bool wide = dtype == DType::f64;
  if (std::isnan(value)) return wide ? "f64(not_a_number())" : "not_a_number()";
  if (std::isinf(value)) return fmt::format("{}{}", value < 0 ? "-" : "", wide ? "f64(infinity())" : "infinity()");
  const double held = wide ? value : static_cast<double>(static_cast<float>(value));
  if (std::isinf(held)) return literal_of(held, dtype);
  const bool whole = held == std::floor(held) && std::fabs(held) < 1e6;
  std::string text = whole ? fmt::format("{:.1f}", held) : fmt::format("{:a}", held);
  if (!wide) text += 'f';
  return std::signbit(held) ? "(" + text + ")" : text;
}

std::string round_text(std::string x, DType dtype) {
  if (dtype == DType::bf16) return fmt::format("round_to_bf16({})", x);
  if (small_float(dtype)) return fmt::format("to_f32({}({}))", to_storage(dtype), x);
  if (dtype == DType::u8 || dtype == DType::u16) return fmt::format("i32({}({}))", storage_type(dtype), x);
  return x;
}

std::string convert_text(std::string x, DType from, DType to) {
  if (from == DType::real) from = DType::f32;
  if (to == DType::real) to = DType::f32;
  if (from == to) return x;
  if (to == DType::boolean) return fmt::format("({} != {})", x, is_floating(from) ? literal_of(0, from) : "0");
  if (is_floating(to)) {
    const bool rounds_once = small_float(to) && (from == DType::f64 || from == DType::i32 || from == DType::i64);
    if (rounds_once) return round_text(fmt::format("odd_f32(f64({}))", x), to);
    return round_text(register_dtype(from) == register_dtype(to) ? x : fmt::format("{}({})", register_type(to), x), to);
  }
  if (is_floating(from)) {
    if (to == DType::u8 || to == DType::u16) return fmt::format("to_whole({}, {})", x, to == DType::u8 ? 255 : 65535);
    return fmt::format("to_{}({})", register_type(to), x);
  }
  if (from == DType::boolean) return fmt::format("{}({})", register_type(to), x);
  return round_text(register_dtype(from) == register_dtype(to) ? x : fmt::format("{}({})", register_type(to), x), to);
}

std::string ValueText::stored(std::string x, DType from, DType buffer) const {
  x = convert_text(std::move(x), from, register_dtype(buffer));
  if (small_float(buffer)) return fmt::format("{}({})", to_storage(buffer), x);
  if (register_dtype(buffer) != buffer || buffer == DType::boolean) return fmt::format("{}({})", storage_type(buffer), x);
  return x;
}

std::string ValueText::loaded(const std::string& element, DType buffer) const {
  if (small_float(buffer)) return fmt::format("to_f32({})", element);
  if (buffer == DType::boolean) return fmt::format("({} != 0)", element);
  if (register_dtype(buffer) != buffer && buffer != DType::real) return fmt::format("i32({})", element);
  return element;
}

}  // namespace einc
