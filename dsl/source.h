// SPDX-License-Identifier: Apache-2.0
// Source text and places in it. A SourceMap owns every file of one compilation; a Span is three integers that name a
// byte range of one of them, so every node and diagnostic can carry one for free. Text is taken in whole, once, and
// checked (size, encoding, invisible characters) before anything looks at it: behind load() and add() all text is valid UTF-8.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace einc {

class Diagnostics;

constexpr size_t kMaxSourceBytes = size_t{16} << 20;

enum class FileId : uint32_t { none = 0 };  // files count from 1

// Bytes [begin, end) of a file. A default Span has no place (text made by the compiler itself).
struct Span {
  FileId file = FileId::none;
  uint32_t begin = 0;
  uint32_t end = 0;

  bool known() const { return file != FileId::none; }
  uint32_t size() const { return end - begin; }
  friend bool operator==(const Span&, const Span&) = default;
};

// The smallest span that covers both; both lie in one file, or one of them is unknown.
Span join(Span a, Span b);

// Line and column count from 1; the column counts code points, as editors do.
struct Location {
  uint32_t line = 1;
  uint32_t column = 1;
  friend bool operator==(const Location&, const Location&) = default;
};

class SourceFile {
 public:
  SourceFile(std::string name, std::string text);
  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }
  Location locate(uint32_t offset) const;
  uint32_t line_count() const { return static_cast<uint32_t>(line_starts_.size()); }
  uint32_t line_start(uint32_t line) const { return line_starts_[line - 1]; }
  std::string_view line_text(uint32_t line) const;  // without its line end

 private:
  std::string name_;
  std::string text_;
  uint32_t code_points_before(uint32_t offset) const;

  std::vector<uint32_t> line_starts_;
  std::vector<uint32_t> code_points_;  // before every 1024th byte, so that locate() is quick on a line of megabytes
};

class SourceMap {
 public:
  // Reads a file, at most kMaxSourceBytes of it, and checks its text; a failure is reported and gives nothing.
  std::optional<FileId> load(const std::string& path, Diagnostics& diagnostics);
  // Takes text that is already in memory, under the name to show for it; checked like a file.
  std::optional<FileId> add(std::string name, std::string text, Diagnostics& diagnostics);

  const SourceFile& file(FileId id) const { return files_[static_cast<uint32_t>(id) - 1]; }
  std::string_view text(Span span) const { return file(span.file).text().substr(span.begin, span.size()); }
  Location begin_of(Span span) const { return file(span.file).locate(span.begin); }
  size_t file_count() const { return files_.size(); }

 private:
  std::deque<SourceFile> files_;  // deque: views of the texts stay valid
};

}  // namespace einc
