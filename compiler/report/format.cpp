// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace einc {
namespace {

size_t display_width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// Four significant digits.
std::string significant(double value) {
  return fmt::format("{:.{}f}", value, value >= 999.95 ? 0 : value >= 99.995 ? 1 : value >= 9.9995 ? 2 : 3);
}

}  // namespace

std::string grouped_digits(std::string_view digits) {
  std::string result;
  const size_t sign = !digits.empty() && digits[0] == '-' ? 1 : 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0) result += ',';
    result += digits[i];
  }
  return result;
}

std::string human_count(double value) {
  constexpr std::array<const char*, 9> kUnits{"", " k", " M", " G", " T", " P", " E", " Z", " Y"};
  size_t unit = 0;
  while (std::abs(value) >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.4g}", value);
  return significant(value) + kUnits[unit];
}

std::string human_bytes(double bytes) {
  constexpr std::array<const char*, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  while (bytes >= 1023.95 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} B", bytes);
  return significant(bytes) + " " + kUnits[unit];
}

std::string human_seconds(double s) {
  if (s == 0) return "0 s";
  if (s < 1e-6) return significant(s * 1e9) + " ns";
  if (s < 1e-3) return significant(s * 1e6) + " us";
  if (s < 1) return significant(s * 1e3) + " ms";
  if (s < 120) return significant(s) + " s";
  if (s < 7200) return significant(s / 60) + " min";
  if (s < 172800) return significant(s / 3600) + " h";
  return significant(s / 86400) + " days";
}

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::vector<std::string> wrap_formula(const std::string& formula, int width) {
  std::vector<std::string> lines;
  std::string line;
  size_t begin = 0;
  auto take = [&](size_t end) {
    const std::string term = formula.substr(begin, end - begin);
    if (!line.empty() && line.size() + term.size() > static_cast<size_t>(std::max(width, 1))) {
      lines.push_back(line);
      line = "  " + term.substr(term.find_first_not_of(' '));
    } else {
      line += term;
    }
    begin = end;
  };
  for (size_t i = 0; i < formula.size(); ++i) {
    const bool joint = i > begin && i + 2 < formula.size() && formula[i] == ' ' && (formula[i + 1] == '+' || formula[i + 1] == '-') &&
                       formula[i + 2] == ' ';
    if (joint) take(i);
  }
  take(formula.size());
  if (!line.empty()) lines.push_back(line);
  return lines;
}

std::vector<std::string> Table::lines(int width) const {
  const size_t last = columns_.size() - 1;
  std::vector<size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c]));
  size_t before = 2;
  for (size_t c = 0; c < last; ++c) before += widths[c] + 2;
  constexpr size_t kLeast = 24;
  const size_t room = std::max(static_cast<size_t>(std::max(width, 0)), before + kLeast) - before;
  std::vector<std::string> result;
  for (const auto& row : rows_) {
    std::string line = "  ";
    for (size_t c = 0; c < last; ++c) {
      const std::string pad(widths[c] - display_width(row[c]), ' ');
      line += (columns_[c] == Align::right ? pad + row[c] : row[c] + pad) + "  ";
    }
    std::vector<std::string> tail = columns_[last] == Align::left
                                        ? wrap_formula(row[last], static_cast<int>(room))
                                        : std::vector<std::string>{std::string(widths[last] - display_width(row[last]), ' ') + row[last]};
    if (tail.empty()) tail.emplace_back();
    for (size_t k = 0; k < tail.size(); ++k) {
      std::string whole = (k == 0 ? line : std::string(before, ' ')) + tail[k];
      whole.erase(whole.find_last_not_of(' ') + 1);
      result.push_back(std::move(whole));
    }
  }
  return result;
}

}  // namespace einc
