// SPDX-License-Identifier: Apache-2.0
// What a report says, in blocks that a terminal, Markdown and a page show each in their own way.
#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/report/format.h"
#include "compiler/report/text.h"

namespace einc {

// Text that HTML shows as it stands, also inside of a quoted attribute.
std::string html_text(std::string_view text);

class Document {
 public:
  void heading(std::string_view text, std::string_view aside = "") { blocks_.push_back(Heading{std::string(text), std::string(aside)}); }
  void line(std::string text) { blocks_.push_back(Line{std::move(text)}); }
  // The first row is the header when `titled`.
  void table(Table table, bool titled) { blocks_.push_back(Rows{std::move(table), titled}); }

  std::string text(TextStyle style) const;
  std::string markdown() const;
  // Sections of a page, from the first heading on; headings are <h2>, and tables scroll by themselves where the window is narrow.
  std::string html() const;

 private:
  struct Heading {
    std::string text, aside;
  };
  struct Line {
    std::string text;
  };
  struct Rows {
    Table table;
    bool titled;
  };
  std::vector<std::variant<Heading, Line, Rows>> blocks_;
};

// What the text report says; the lines of dims are at most `width` long.
Document report_document(const Report& report, int width);

}  // namespace einc
