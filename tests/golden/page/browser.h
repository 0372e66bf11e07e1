// SPDX-License-Identifier: Apache-2.0
// A page as Chromium without a screen shows it, in a window of any width; for machines that have one.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace einc::test {

// The command that starts it; nullopt where none is installed.
std::optional<std::string> find_browser();

struct ShownPage {
  struct Row {
    std::string heading;  // of the section that its table is in
    std::vector<std::string> cells;
  };
  int width = 0, content_width = 0;  // of the window, and what its content would need
  std::vector<Row> rows;             // of all tables
  std::string json;                  // what the page carries as data
  std::vector<std::string> dead_links;
  int shapes = 0;  // elements of its pictures that have an extent on the screen
  std::string console;
};

// `page` is the text of a whole document. Throws std::runtime_error where the browser shows nothing.
ShownPage show_page(const std::string& browser, const std::string& page, int width);

}  // namespace einc::test
