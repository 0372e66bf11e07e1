// SPDX-License-Identifier: Apache-2.0
#include "tests/support/case_table.h"

#include <charconv>
#include <fstream>

namespace einc::test {

namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\r')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::vector<std::string> split_fields(std::string_view text, std::string_view separator) {
  std::vector<std::string> fields;
  for (;;) {
    const size_t end = text.find(separator);
    fields.emplace_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + separator.size());
  }
}

std::vector<CaseRow> read_case_table(const std::string& path) {
  std::ifstream file(path);
  std::vector<CaseRow> rows;
  std::string line, section;
  bool in_table = false;
  while (std::getline(file, line)) {
    if (line.starts_with("## ")) {
      section = line.substr(3);
      in_table = false;
    } else if (line.starts_with("--- |")) {
      in_table = true;
    } else if (in_table && line.find(" | ") != std::string::npos) {
      rows.push_back({section, split_fields(line, " | ")});
    }
  }
  return rows;
}

std::vector<std::vector<int64_t>> parse_shapes(std::string_view text) {
  std::vector<std::vector<int64_t>> shapes;
  for (size_t at = 0; (at = text.find('(', at)) != std::string_view::npos; ++at) {
    auto& shape = shapes.emplace_back();
    const size_t end = text.find(')', at);
    for (const std::string& item : split_fields(text.substr(at + 1, end - at - 1), ",")) {
      int64_t value = 0;
      if (std::from_chars(item.data(), item.data() + item.size(), value).ptr != item.data()) shape.push_back(value);
    }
  }
  return shapes;
}

std::vector<std::pair<std::string, std::string>> parse_sizes(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> sizes;
  for (const std::string& item : split_fields(text, " ")) {
    const size_t equals = item.find('=');
    if (equals != std::string::npos) sizes.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  return sizes;
}

}  // namespace einc::test
