// SPDX-License-Identifier: Apache-2.0
// NumPy's rules (numpy.set_printoptions: floatmode maxprec, precision 8): shortest digits that tell a number from its neighbours, cut to 8,
// then as many for all as the longest needs. tests/unit/driver/array_text_test.cpp holds what NumPy 2.4 printed.
#include "compiler/driver/real_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace einc {
namespace {

constexpr size_t kMostDigits = 8;                     // behind the point
constexpr double kSmallest = 1e-4, kMostRatio = 1e3;  // of plain numbers

// From here on numbers have powers of ten: ten to as many digits as the type holds, 8 at most.
double first_with_power(DType dtype) { return dtype == DType::f64 ? 1e8 : dtype == DType::f16 ? 1e3 : 1e6; }

template <class Real>
std::string shortest_text(Real value, std::chars_format form) {
  char text[512];
  const auto result = std::to_chars(text, std::end(text), value, form);
  return {text, result.ptr};
}

// "-12", "5", "e+07" of "-12.5e+07".
struct NumberParts {
  std::string before, behind, power;
};

NumberParts number_parts(const std::string& digits) {
  const size_t power = std::min(digits.find('e'), digits.size()), point = std::min(digits.find('.'), power);
  NumberParts parts{digits.substr(0, point), digits.substr(std::min(point + 1, power), power - std::min(point + 1, power)),
                    digits.substr(power)};
  while (!parts.behind.empty() && parts.behind.back() == '0') parts.behind.pop_back();
  return parts;
}

}  // namespace

RealFormat::RealFormat(std::span<const double> shown, DType dtype) : single_(dtype != DType::f64) {
  double largest = 0, smallest = std::numeric_limits<double>::infinity();
  for (const double value : shown) {
    if (!std::isfinite(value) || value == 0) continue;
    largest = std::max(largest, std::abs(value));
    smallest = std::min(smallest, std::abs(value));
  }
  powers_ = largest > 0 && (largest >= first_with_power(dtype) || smallest < kSmallest || largest / smallest > kMostRatio);
  size_t words = 0;
  for (const double value : shown) {
    if (!std::isfinite(value)) {
      words = std::max(words, text(value).size());
      continue;
    }
    const NumberParts parts = number_parts(digits(value));
    before_ = std::max(before_, parts.before.size());
    behind_ = std::max(behind_, parts.behind.size());
    exponent_ = std::max(exponent_, parts.power.size());
  }
  const size_t after = 1 + behind_ + exponent_;
  if (words > after) before_ = std::max(before_, words - after);
}

std::string RealFormat::digits(double value) const {
  const auto form = powers_ ? std::chars_format::scientific : std::chars_format::fixed;
  const std::string all = single_ ? shortest_text(static_cast<float>(value), form) : shortest_text(value, form);
  if (number_parts(all).behind.size() <= kMostDigits) return all;
  return powers_ ? fmt::format("{:.{}e}", value, kMostDigits) : fmt::format("{:.{}f}", value, kMostDigits);
}

std::string RealFormat::text(double value) const {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  if (!powers_) {
    const NumberParts parts = number_parts(digits(value));
    return parts.before + "." + parts.behind;
  }
  // The exact number to as many digits, as NumPy fills up: 3e30 in 32 bits beside 1.2345679e-07 is 2.9999999e+30.
  std::string text = fmt::format("{:#.{}e}", value, behind_);
  const size_t power = text.find('e');
  return text.insert(power + 2, exponent_ - (text.size() - power), '0');
}

std::string RealFormat::padded(double value) const {
  const std::string number = text(value);
  const size_t width = before_ + 1 + behind_ + exponent_;
  if (!std::isfinite(value)) return fmt::format("{:>{}}", number, width);
  return fmt::format("{:<{}}", std::string(before_ - number.find('.'), ' ') + number, width);
}

}  // namespace einc
