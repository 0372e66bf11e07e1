// SPDX-License-Identifier: Apache-2.0
// Tables of cases kept as text: "## section" lines, then rows of fields separated by " | " (the first row names them).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace einc::test {

struct CaseRow {
  std::string section;
  std::vector<std::string> fields;  // trimmed; the first is the case's id
};

std::vector<CaseRow> read_case_table(const std::string& path);
std::vector<std::string> split_fields(std::string_view text, std::string_view separator);  // trimmed
// "(2,3) ; () ; W (4)" -> {{2,3}, {}, {4}}
std::vector<std::vector<int64_t>> parse_shapes(std::string_view text);
// "h=8 w=2" -> {{"h", "8"}, {"w", "2"}} in order
std::vector<std::pair<std::string, std::string>> parse_sizes(std::string_view text);

}  // namespace einc::test
