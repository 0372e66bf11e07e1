// SPDX-License-Identifier: Apache-2.0
// Reading and checking source text. What is too large, or not text, is refused before anything else sees it.
#include "dsl/source.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dsl/diagnostic.h"
#include "runtime/base/regular_file.h"

namespace einc {
namespace {

constexpr size_t kCodePointStride = 128;

bool starts_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// Direction overrides and isolates, zero-width characters and line separators: a reader cannot see what they do.
bool is_hidden(utf8proc_int32_t c) {
  return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
         c == 0x2060 || c == 0x061C || c == 0xFEFF || c == 0x85;
}

std::string_view utf16_name(std::string_view text) {
  if (text.starts_with("\xFF\xFE")) return "UTF-16 (little endian)";
  if (text.starts_with("\xFE\xFF")) return "UTF-16 (big endian)";
  if (text.size() >= 4 && text[0] != 0 && text[1] == 0 && text[2] != 0 && text[3] == 0) return "UTF-16 (little endian)";
  if (text.size() >= 4 && text[0] == 0 && text[1] != 0 && text[2] == 0 && text[3] != 0) return "UTF-16 (big endian)";
  return {};
}

// The first thing wrong with the characters, if any.
bool check_characters(std::string_view text, FileId id, Diagnostics& diagnostics) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t i = 0; i < text.size();) {
    const unsigned char c = bytes[i];
    const auto at = static_cast<uint32_t>(i);
    if (c == 0) {
      diagnostics.report(Code::nul_byte, Span{id, at, at + 1}).hint("remove everything from here on that is not source text");
      return false;
    }
    if (c == '\r' && (i + 1 == text.size() || bytes[i + 1] != '\n')) {
      diagnostics.report(Code::hidden_character, Span{id, at, at + 1}, "000D").hint("end lines with a line feed");
      return false;
    }
    if (c < 0x80) {
      ++i;
      continue;
    }
    utf8proc_int32_t code_point = 0;
    const utf8proc_ssize_t length = utf8proc_iterate(bytes + i, static_cast<utf8proc_ssize_t>(text.size() - i), &code_point);
    if (length <= 0) {
      diagnostics.report(Code::invalid_utf8, Span{id, at, at + 1}).hint("save the file as UTF-8");
      return false;
    }
    const Span span{id, at, at + static_cast<uint32_t>(length)};
    if (is_hidden(code_point)) {
      diagnostics.report(Code::hidden_character, span, fmt::format("{:04X}", code_point)).hint("remove it");
      return false;
    }
    i += static_cast<size_t>(length);
  }
  return true;
}

}  // namespace

Span join(Span a, Span b) {
  if (!a.known()) return b;
  if (!b.known()) return a;
  return {a.file, std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

SourceFile::SourceFile(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)), line_starts_{0} {
  uint32_t code_points = 0;
  for (size_t i = 0; i < text_.size(); ++i) {
    if (i % kCodePointStride == 0) code_points_.push_back(code_points);
    if (starts_code_point(text_[i])) ++code_points;
    if (text_[i] == '\n') line_starts_.push_back(static_cast<uint32_t>(i + 1));
  }
  if (text_.size() % kCodePointStride == 0) code_points_.push_back(code_points);
}

uint32_t SourceFile::code_points_before(uint32_t offset) const {
  const size_t block = offset / kCodePointStride;
  const auto begin = text_.begin() + static_cast<std::ptrdiff_t>(block * kCodePointStride);
  return code_points_[block] + static_cast<uint32_t>(std::count_if(begin, text_.begin() + offset, starts_code_point));
}

Location SourceFile::locate(uint32_t offset) const {
  offset = std::min(offset, static_cast<uint32_t>(text_.size()));
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const auto line = static_cast<uint32_t>(after - line_starts_.begin());
  return {line, code_points_before(offset) - code_points_before(line_starts_[line - 1]) + 1};
}

std::string_view SourceFile::line_text(uint32_t line) const {
  const size_t begin = line_starts_[line - 1];
  size_t end = line < line_starts_.size() ? line_starts_[line] - 1 : text_.size();
  if (end > begin && text_[end - 1] == '\r') --end;
  return std::string_view(text_).substr(begin, end - begin);
}

std::optional<FileId> SourceMap::add(std::string name, std::string text, Diagnostics& diagnostics) {
  const auto id = static_cast<FileId>(files_.size() + 1);
  const Span start{id, 0, 0};
  if (text.size() > kMaxSourceBytes) {
    files_.emplace_back(std::move(name), std::string());
    diagnostics.report(Code::file_too_large, start).hint("split it into files that are imported");
    return std::nullopt;
  }
  if (const std::string_view encoding = utf16_name(text); !encoding.empty()) {
    files_.emplace_back(std::move(name), std::string());
    diagnostics.report(Code::utf16_source, start, encoding).hint("convert it: iconv -f UTF-16 -t UTF-8");
    return std::nullopt;
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // a byte order mark says nothing in UTF-8
  files_.emplace_back(std::move(name), std::move(text));
  if (!check_characters(files_.back().text(), id, diagnostics)) return std::nullopt;
  return id;
}

std::optional<FileId> SourceMap::load(const std::string& path, Diagnostics& diagnostics) {
  const auto refuse = [&](std::string_view why) -> std::optional<FileId> {
    diagnostics.report(Code::file_not_readable, Span{}, path, why);
    return std::nullopt;
  };
  const RegularFile file(path);
  if (!file.is_open()) return refuse(file.problem());
  // What is too large need not be read.
  if (static_cast<uint64_t>(file.status().st_size) > kMaxSourceBytes) return add(path, std::string(kMaxSourceBytes + 1, ' '), diagnostics);
  std::optional<std::string> text = file.read_start(kMaxSourceBytes + 1);
  if (!text) return refuse(std::strerror(errno));
  return add(path, std::move(*text), diagnostics);
}

}  // namespace einc
