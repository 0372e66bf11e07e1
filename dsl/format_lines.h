// SPDX-License-Identifier: Apache-2.0
// The lines the formatter builds, and their alignment in columns.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace einc {

constexpr size_t kNoColumn = static_cast<size_t>(-1);

enum class Declares : uint8_t { nothing, input, param, frozen_param, state };

struct FormatLine {
  size_t indent = 0;
  std::string text;     // without indentation
  std::string comment;  // with its `#`
  size_t comment_gap = 2;
  bool blank_before = false;
  bool whole_statement = true;  // neither continues a statement nor is continued
  Declares declares = Declares::nothing;
  size_t type_column = kNoColumn;   // in text: just behind the declaration's colon and blank
  size_t tilde_column = kNoColumn;  // in text: of the initialiser's `~`
};

// Pads declarations of one kind on neighbouring lines so that types and `~` stand in columns, then neighbouring comments.
void align(std::vector<FormatLine>& lines);

std::string join_lines(const std::vector<FormatLine>& lines);

}  // namespace einc
