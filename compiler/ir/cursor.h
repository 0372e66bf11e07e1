// SPDX-License-Identifier: Apache-2.0
// One line of graph text, read from left to right. The first mistake is remembered and everything after it yields empty
// values, so callers read straight on and ask once, at the end of the line.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

class Cursor {
 public:
  explicit Cursor(std::string_view line) : line_(line) {}

  const std::string& error() const { return error_; }
  bool failed() const { return !error_.empty(); }
  void fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
  }

  // All of these skip spaces first.
  bool at_end();                       // nothing but a comment is left, or an error occurred
  bool accept(std::string_view text);  // punctuation, or a key such as "axis="
  void expect(std::string_view text);
  bool accept_word(std::string_view word);  // a whole word
  std::string word();
  std::string peek_word();  // empty where none stands; stays before it
  bool next_is(char c) { return skip_spaces(), !failed() && peek() == c; }
  std::string_view rest() const { return line_.substr(position_); }
  void skip_rest() { position_ = line_.size(); }
  std::string string();
  int64_t integer();
  int64_t integer(int64_t low, int64_t high);
  uint32_t node(uint32_t count);  // "%7", below count
  Poly poly();                    // in parentheses
  ScalarValue scalar();
  double number();
  double hexadecimal();  // as {:a} prints it: 0x1.8p+1, inf, nan
  AxisList axis_list();
  std::vector<Poly> polys();
  std::vector<double> numbers();
  Type type();
  SourceLocation location();  // "file":line:column-end

  // A word that `parse` understands.
  template <class Parse>
  auto word_of(Parse parse, std::string_view what) {
    const std::string text = word();
    auto value = parse(text);
    if (!value) fail("'" + text.substr(0, 40) + "' is no " + std::string(what));
    return value ? *value : typename decltype(value)::value_type{};
  }

 private:
  void skip_spaces();
  char peek() const { return position_ < line_.size() ? line_[position_] : '\0'; }
  Axis axis();
  Poly size();

  std::string_view line_;
  size_t position_ = 0;
  std::string error_;
};

// What is wrong with a text that is read line by line.
struct LineError {
  int line = 0;  // 1-based
  std::string message;
};

// Gives each line that is not empty to `read`, until one is not as it should be or is not read to its end; says how many there are.
struct LinesRead {
  int lines = 0;
  std::optional<LineError> error;
};
template <class Read>
LinesRead read_lines(std::string_view text, Read read) {
  LinesRead result;
  while (!text.empty()) {
    ++result.lines;
    const size_t end = std::min(text.find('\n'), text.size());
    Cursor cursor(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (cursor.at_end()) continue;
    read(cursor);
    if (!cursor.at_end()) cursor.fail("something is left at the end of the line");
    if (!cursor.failed()) continue;
    result.error = {result.lines, cursor.error()};
    return result;
  }
  return result;
}

}  // namespace einc
