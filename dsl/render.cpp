// SPDX-License-Identifier: Apache-2.0
// One diagnostic is a headline, an excerpt per place (several marks share a line's excerpt) and the hint. Excerpts are
// windows of a line around the span, so a line of megabytes costs no more than a short one.
#include "dsl/render.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace einc {
namespace {

constexpr size_t kContextBytes = 64;  // of a long line, shown before the span
constexpr size_t kShownColumns = 120;
constexpr std::string_view kReset = "\x1b[0m", kRed = "\x1b[1;31m", kYellow = "\x1b[1;33m", kBlue = "\x1b[1;34m", kBold = "\x1b[1m";

std::string_view word(Severity severity) { return severity == Severity::error ? "error" : "warning"; }

// Errors first up to the limit, warnings if there is room; then in the order of the source.
std::vector<const Diagnostic*> shown(const Diagnostics& diagnostics) {
  std::vector<const Diagnostic*> all;
  for (const Diagnostic& d : diagnostics.list()) all.push_back(&d);
  std::stable_sort(all.begin(), all.end(), [](auto* a, auto* b) { return a->severity < b->severity; });
  if (all.size() > kMaxShownDiagnostics) all.resize(kMaxShownDiagnostics);
  std::stable_sort(all.begin(), all.end(), [](auto* a, auto* b) {
    return a->span.file != b->span.file ? a->span.file < b->span.file : a->span.begin < b->span.begin;
  });
  return all;
}

// A stretch of one source line as it appears on a terminal, with the columns of the span in it.
struct Excerpt {
  std::string text;
  size_t mark_begin = 0;
  size_t mark_width = 0;
};

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  for (size_t i = 0; i < text.size();) {
    utf8proc_int32_t code_point = 0;
    const utf8proc_ssize_t length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + i),
                                                     static_cast<utf8proc_ssize_t>(text.size() - i), &code_point);
    if (length <= 0) return columns + (text.size() - i);
    columns += static_cast<size_t>(std::max(0, utf8proc_charwidth(code_point)));
    i += static_cast<size_t>(length);
  }
  return columns;
}

size_t code_point_length(std::string_view text, size_t i) {
  size_t length = 1;
  while (i + length < text.size() && (static_cast<unsigned char>(text[i + length]) & 0xC0) == 0x80) ++length;
  return length;
}

Excerpt excerpt(std::string_view line, size_t begin, size_t end) {
  Excerpt result;
  begin = std::min(begin, line.size());
  end = std::clamp(end, begin, line.size());
  size_t i = begin > kContextBytes ? begin - kContextBytes : 0;
  while (i > 0 && (static_cast<unsigned char>(line[i]) & 0xC0) == 0x80) --i;
  size_t column = 0;
  if (i > 0) {
    result.text = "...";
    column = 3;
  }
  while (i < line.size()) {
    if (column >= kShownColumns) {
      result.text += "...";
      break;
    }
    const size_t length = code_point_length(line, i);
    const std::string piece = line[i] == '\t' ? "    " : printable(line.substr(i, length));
    if (i < begin) result.mark_begin = column + columns_of(piece);
    if (i >= begin && i < end) result.mark_width += columns_of(piece);
    column += columns_of(piece);
    result.text += piece;
    i += length;
  }
  if (begin == 0) result.mark_begin = 0;
  result.mark_width = std::max<size_t>(result.mark_width, 1);
  return result;
}

class TextRenderer {
 public:
  TextRenderer(const SourceMap& sources, Color color) : sources_(sources), color_(color) {}

  std::string render(const Diagnostic& d) {
    const std::string_view tint = d.severity == Severity::error ? kRed : kYellow;
    std::string out = paint(fmt::format("{}[{}]", word(d.severity), info(d.code).code), tint) + paint(": " + d.message, kBold) + "\n";
    gutter_ = gutter_width(d);
    shown_line_ = 0;
    if (d.span.known()) {
      out += place(d.span, "-->");
      out += mark(d.span, '^', "", tint);
    }
    for (const Label& label : d.labels) {
      const bool same_line = d.span.known() && shown_file_ == label.span.file && sources_.begin_of(label.span).line == shown_line_;
      if (!same_line) out += place(label.span, ":::");
      out += mark(label.span, '-', label.text, kBlue);
    }
    if (!d.hint.empty()) out += fmt::format("{} {} hint: {}\n", std::string(gutter_, ' '), paint("=", kBlue), d.hint);
    return out;
  }

 private:
  size_t gutter_width(const Diagnostic& d) const {
    uint32_t last = d.span.known() ? sources_.begin_of(d.span).line : 1;
    for (const Label& label : d.labels) last = std::max(last, sources_.begin_of(label.span).line);
    return fmt::format("{}", last).size();
  }

  std::string place(Span span, std::string_view arrow) const {
    const Location at = sources_.begin_of(span);
    return fmt::format("{}{} {}:{}:{}\n", std::string(gutter_, ' '), paint(arrow, kBlue), printable(sources_.file(span.file).name()),
                       at.line, at.column);
  }

  // The source line, unless it is the one just shown, and a row of marks under the span.
  std::string mark(Span span, char sign, std::string_view text, std::string_view tint) {
    const SourceFile& file = sources_.file(span.file);
    const uint32_t line = file.locate(span.begin).line;
    const size_t start = file.line_start(line);
    const Excerpt e = excerpt(file.line_text(line), span.begin - start, span.end - start);
    const std::string margin = std::string(gutter_, ' ') + " " + paint("|", kBlue);
    std::string out;
    if (line != shown_line_ || span.file != shown_file_) {
      out += margin + "\n";
      out += paint(fmt::format("{:>{}} |", line, gutter_), kBlue) + (e.text.empty() ? "" : " ") + e.text + "\n";
    }
    shown_line_ = line;
    shown_file_ = span.file;
    std::string marks(e.mark_width, sign);
    if (!text.empty()) marks += " " + std::string(text);
    return out + margin + " " + std::string(e.mark_begin, ' ') + paint(marks, tint) + "\n";
  }

  std::string paint(std::string_view text, std::string_view tint) const {
    if (color_ == Color::off) return std::string(text);
    return fmt::format("{}{}{}", tint, text, kReset);
  }

  const SourceMap& sources_;
  Color color_;
  size_t gutter_ = 1;
  uint32_t shown_line_ = 0;
  FileId shown_file_ = FileId::none;
};

void put_place(nlohmann::ordered_json& json, const SourceMap& sources, Span span) {
  if (!span.known()) return;
  const SourceFile& file = sources.file(span.file);
  const Location begin = file.locate(span.begin), end = file.locate(span.end);
  json["file"] = file.name();
  json["line"] = begin.line;
  json["column"] = begin.column;
  json["end"] = {{"line", end.line}, {"column", end.column}};
}

}  // namespace

std::string render_text(const SourceMap& sources, const Diagnostics& diagnostics, Color color) {
  TextRenderer renderer(sources, color);
  std::string out;
  size_t errors = 0, warnings = 0;
  for (const Diagnostic* d : shown(diagnostics)) {
    const std::string text = renderer.render(*d);
    if (out.size() + text.size() + 256 > kMaxRenderedBytes) break;
    out += text + "\n";
    ++(d->severity == Severity::error ? errors : warnings);
  }
  if (const size_t more = diagnostics.error_count() - errors) out += fmt::format("{} more error{}\n", more, more == 1 ? "" : "s");
  if (const size_t more = diagnostics.warning_count() - warnings) out += fmt::format("{} more warning{}\n", more, more == 1 ? "" : "s");
  return out;
}

std::string render_json(const SourceMap& sources, const Diagnostics& diagnostics) {
  auto list = nlohmann::ordered_json::array();
  for (const Diagnostic* d : shown(diagnostics)) {
    nlohmann::ordered_json json{{"code", info(d->code).code}, {"severity", word(d->severity)}, {"message", d->message}};
    put_place(json, sources, d->span);
    json["labels"] = nlohmann::ordered_json::array();
    for (const Label& label : d->labels) {
      nlohmann::ordered_json item;
      put_place(item, sources, label.span);
      item["message"] = label.text;
      json["labels"].push_back(std::move(item));
    }
    if (!d->hint.empty()) json["hint"] = d->hint;
    if (!d->replacements.empty()) json["replacements"] = nlohmann::ordered_json::array();
    for (const Replacement& replacement : d->replacements) {
      nlohmann::ordered_json item;
      put_place(item, sources, replacement.span);
      item["text"] = replacement.text;
      json["replacements"].push_back(std::move(item));
    }
    list.push_back(std::move(json));
  }
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace einc
