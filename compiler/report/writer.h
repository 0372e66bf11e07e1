// Lines of a text report: headings, tables, colour when asked for.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "compiler/report/format.h"
#include "compiler/report/text.h"

namespace einc {

class Writer {
 public:
  explicit Writer(TextStyle style) : style_(style) {}

  void heading(std::string_view text, std::string_view aside = "") {
    if (!out_.empty()) out_ += '\n';
    out_ += paint(text, "1");
    if (!aside.empty()) out_ += "  " + paint(aside, "2");
    out_ += '\n';
  }
  void line(const std::string& text) { out_ += text + "\n"; }
  // The first row is the header when `titled`.
  void table(const Table& table, bool titled) {
    bool first = titled;
    for (const std::string& text : table.lines(style_.width)) {
      out_ += (first ? paint(text, "2") : text) + "\n";
      first = false;
    }
  }
  std::string take() { return std::move(out_); }

 private:
  std::string paint(std::string_view text, const char* code) const {
    return style_.paint == Paint::on ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  }
  TextStyle style_;
  std::string out_;
};

}  // namespace einc
