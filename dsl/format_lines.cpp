// SPDX-License-Identifier: Apache-2.0
#include "dsl/format_lines.h"

#include <utf8proc.h>

#include <algorithm>

namespace einc {
namespace {

constexpr size_t kMaxTypePadding = 12, kMaxTildePadding = 8;  // lines that differ by more are left ragged

// Adds blanks before `column` of each line so that they meet; `column` is a member that may be kNoColumn.
void align_column(std::vector<FormatLine>& lines, size_t begin, size_t end, size_t FormatLine::*column, size_t limit) {
  size_t least = kNoColumn, most = 0;
  for (size_t i = begin; i < end; ++i) {
    const size_t at = lines[i].*column;
    if (at == kNoColumn) continue;
    least = std::min(least, at);
    most = std::max(most, at);
  }
  if (least == kNoColumn || most - least > limit) return;
  for (size_t i = begin; i < end; ++i) {
    FormatLine& line = lines[i];
    const size_t at = line.*column;
    if (at == kNoColumn) continue;
    const size_t padding = most - at;
    line.text.insert(at, padding, ' ');
    for (size_t FormatLine::*other : {&FormatLine::type_column, &FormatLine::tilde_column})
      if (line.*other != kNoColumn && line.*other >= at) line.*other += padding;
  }
}

bool same_group(const FormatLine& a, const FormatLine& b) {
  return !b.blank_before && a.indent == b.indent && a.whole_statement && b.whole_statement && a.declares == b.declares;
}

size_t width(const FormatLine& line) {
  size_t columns = line.indent;
  for (const char c : line.text) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return columns;
}

bool has_trailing_comment(const FormatLine& line) { return !line.comment.empty() && !line.text.empty(); }

}  // namespace

void align(std::vector<FormatLine>& lines) {
  for (size_t begin = 0; begin < lines.size();) {
    size_t end = begin + 1;
    while (end < lines.size() && same_group(lines[begin], lines[end])) ++end;
    if (lines[begin].declares != Declares::nothing && lines[begin].whole_statement) {
      align_column(lines, begin, end, &FormatLine::type_column, kMaxTypePadding);
      align_column(lines, begin, end, &FormatLine::tilde_column, kMaxTildePadding);
    }
    begin = end;
  }
  for (size_t begin = 0; begin < lines.size();) {
    size_t end = begin;
    size_t widest = 0;
    while (end < lines.size() && has_trailing_comment(lines[end]) && (end == begin || !lines[end].blank_before))
      widest = std::max(widest, width(lines[end++]));
    if (end > begin + 1)
      for (size_t i = begin; i < end; ++i) lines[i].comment_gap = widest - width(lines[i]) + 2;
    begin = std::max(end, begin + 1);
  }
}

std::string join_lines(const std::vector<FormatLine>& lines) {
  std::string out;
  for (const FormatLine& line : lines) {
    if (line.blank_before) out += '\n';
    out.append(line.indent, ' ');
    out += line.text;
    if (has_trailing_comment(line)) out.append(line.comment_gap, ' ');
    out += line.comment;
    out += '\n';
  }
  return out;
}

}  // namespace einc
