// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/document.h"

#include <fmt/format.h>

#include <algorithm>

namespace einc {
namespace {

// Without the indentation of a terminal's lines.
std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

// Names and formulas hold signs that Markdown would take for its own.
std::string markdown_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view("\\`*_{}[]<>#|~").find(c) != std::string_view::npos) result += '\\';
    result += c == '\n' || c == '\r' ? ' ' : c;
  }
  return result;
}

void append_markdown(std::string& out, const Table& table, bool titled) {
  const auto row = [&](const std::vector<std::string>& cells) {
    out += '|';
    for (const std::string& cell : cells) out += " " + markdown_text(trimmed(cell)) + " |";
    out += '\n';
  };
  const auto& rows = table.rows();
  row(titled && !rows.empty() ? rows.front() : std::vector<std::string>(table.columns().size()));
  out += '|';
  for (const Align align : table.columns()) out += align == Align::right ? " ---: |" : " --- |";
  out += '\n';
  for (size_t r = titled ? 1 : 0; r < rows.size(); ++r) row(rows[r]);
}

void append_html(std::string& out, const Table& table, bool titled) {
  // A table without a head has a formula at the end of its rows, which a narrow page shows below them.
  out += titled ? "<div class=\"scroll\"><table>\n" : "<div class=\"scroll\"><table class=\"rows\">\n";
  for (size_t r = 0; r < table.rows().size(); ++r) {
    const char* cell = titled && r == 0 ? "th" : "td";
    out += "<tr>";
    const std::vector<std::string>& row = table.rows()[r];
    for (size_t c = 0; c < row.size(); ++c) {
      const bool right = table.columns()[c] == Align::right, formula = !titled && c > 0 && c + 1 == row.size() && !right;
      out += fmt::format("<{0}{1}>{2}</{0}>", cell, right ? " class=\"n\"" : formula ? " class=\"f\"" : "", html_text(trimmed(row[c])));
    }
    out += "</tr>\n";
  }
  out += "</table></div>\n";
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return result;
}

std::string Document::text(TextStyle style) const {
  std::string out;
  const auto paint = [&](std::string_view text, const char* code) {
    return style.paint == Paint::on ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  };
  for (const auto& block : blocks_) {
    if (const auto* heading = std::get_if<Heading>(&block)) {
      if (!out.empty()) out += '\n';
      out += paint(heading->text, "1");
      if (!heading->aside.empty()) out += "  " + paint(heading->aside, "2");
      out += '\n';
    } else if (const auto* line = std::get_if<Line>(&block)) {
      out += line->text + "\n";
    } else {
      const auto& rows = std::get<Rows>(block);
      bool first = rows.titled;
      for (const std::string& text : rows.table.lines(style.width)) {
        out += (first ? paint(text, "2") : text) + "\n";
        first = false;
      }
    }
  }
  return out;
}

std::string Document::markdown() const {
  std::string out;
  for (const auto& block : blocks_) {
    if (!out.empty()) out += '\n';
    if (const auto* heading = std::get_if<Heading>(&block)) {
      out += fmt::format("## {}{}\n", markdown_text(heading->text), heading->aside.empty() ? "" : ": " + markdown_text(heading->aside));
    } else if (const auto* line = std::get_if<Line>(&block)) {
      out += markdown_text(trimmed(line->text)) + "\n";
    } else {
      append_markdown(out, std::get<Rows>(block).table, std::get<Rows>(block).titled);
    }
  }
  return out;
}

std::string Document::html() const {
  std::string out;
  bool open = false;
  for (const auto& block : blocks_) {
    if (const auto* heading = std::get_if<Heading>(&block)) {
      if (open) out += "</section>\n";
      open = true;
      out += fmt::format("<section>\n<h2>{}{}</h2>\n", html_text(heading->text),
                         heading->aside.empty() ? "" : fmt::format(" <small>{}</small>", html_text(heading->aside)));
    } else if (!open) {
      continue;  // the summary, which a page shows above its figures
    } else if (const auto* line = std::get_if<Line>(&block)) {
      out += fmt::format("<p>{}</p>\n", html_text(trimmed(line->text)));
    } else {
      append_html(out, std::get<Rows>(block).table, std::get<Rows>(block).titled);
    }
  }
  return open ? out + "</section>\n" : out;
}

}  // namespace einc
