// SPDX-License-Identifier: Apache-2.0
// Numbers for people: digits in groups, human units, durations, and tables whose columns line up.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace einc {

std::string grouped_digits(std::string_view digits);  // "1234567" -> "1,234,567"
std::string human_count(double value);                // 2.333 T
std::string human_bytes(double bytes);                // 474.7 MiB
std::string human_seconds(double seconds);            // 3.21 ms; 2.1 days
std::string percent(double share);                    // 12.3%

enum class Align : uint8_t { left, right };

// Rows of equal cell counts. Columns are as wide as their widest cell, two spaces apart; cells hold UTF-8 of one column
// per code point. The last column is cut to what the width leaves, broken at " + " into continued lines.
class Table {
 public:
  explicit Table(std::vector<Align> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  size_t row_count() const { return rows_.size(); }
  const std::vector<Align>& columns() const { return columns_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }
  // Lines with two spaces before them.
  std::vector<std::string> lines(int width) const;

 private:
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Broken before " + " and " - ", so that no line is longer than `width` unless one term is.
std::vector<std::string> wrap_formula(const std::string& formula, int width);

}  // namespace einc
