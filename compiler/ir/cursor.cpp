// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/cursor.h"

#include <charconv>

#include "compiler/ir/text.h"

namespace einc {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool is_number_char(char c) { return is_identifier_char(c) || c == '+' || c == '-' || c == '.'; }

}  // namespace

void Cursor::skip_spaces() {
  while (peek() == ' ') ++position_;
}

bool Cursor::at_end() {
  skip_spaces();
  return failed() || position_ >= line_.size() || peek() == '#';
}

bool Cursor::accept(std::string_view text) {
  skip_spaces();
  if (failed() || !line_.substr(position_).starts_with(text)) return false;
  position_ += text.size();
  return true;
}

void Cursor::expect(std::string_view text) {
  if (!accept(text)) fail(fmt::format("expected '{}' at column {}", text, position_ + 1));
}

bool Cursor::accept_word(std::string_view text) {
  skip_spaces();
  const size_t end = position_ + text.size();
  if (failed() || !line_.substr(position_).starts_with(text) || (end < line_.size() && is_identifier_char(line_[end]))) return false;
  position_ = end;
  return true;
}

std::string Cursor::word() {
  skip_spaces();
  const size_t begin = position_;
  while (is_identifier_char(peek())) ++position_;
  if (position_ == begin) fail(fmt::format("expected a word at column {}", position_ + 1));
  return failed() ? std::string() : std::string(line_.substr(begin, position_ - begin));
}

std::string Cursor::peek_word() {
  skip_spaces();
  size_t end = position_;
  while (end < line_.size() && is_identifier_char(line_[end])) ++end;
  return std::string(line_.substr(position_, end - position_));
}

std::string Cursor::string() {
  expect("\"");
  std::string text;
  while (!failed() && peek() != '"') {
    if (position_ >= line_.size()) {
      fail("a string is not closed");
    } else if (peek() != '\\') {
      text += line_[position_++];
    } else if (line_.size() - position_ >= 4 && line_[position_ + 1] == 'x') {
      const int high = hex_digit(line_[position_ + 2]), low = hex_digit(line_[position_ + 3]);
      if (high < 0 || low < 0) fail("bad \\x in a string");
      text += static_cast<char>(high * 16 + low);
      position_ += 4;
    } else if (line_.size() - position_ >= 2) {
      text += line_[position_ + 1];
      position_ += 2;
    } else {
      fail("a string is not closed");
    }
  }
  expect("\"");
  return failed() ? std::string() : text;
}

int64_t Cursor::integer() {
  skip_spaces();
  int64_t value = 0;
  const char* begin = line_.data() + position_;
  const auto [end, problem] = std::from_chars(begin, line_.data() + line_.size(), value);
  if (problem != std::errc()) fail(fmt::format("expected an integer of 64 bits at column {}", position_ + 1));
  position_ += static_cast<size_t>(end - begin);
  return failed() ? 0 : value;
}

int64_t Cursor::integer(int64_t low, int64_t high) {
  const int64_t value = integer();
  if (!failed() && (value < low || value > high)) fail(fmt::format("{} is not from {} to {}", value, low, high));
  return failed() ? low : value;
}

uint32_t Cursor::node(uint32_t count) {
  expect("%");
  const int64_t id = integer();
  if (!failed() && (id < 0 || id >= count)) fail(fmt::format("node %{} does not exist here", id));
  return failed() ? 0 : static_cast<uint32_t>(id);
}

Poly Cursor::poly() {
  expect("(");
  const size_t begin = position_;
  int depth = 1;
  for (; position_ < line_.size(); ++position_) {
    if (line_[position_] == '(') ++depth;
    if (line_[position_] == ')' && --depth == 0) break;
  }
  const std::string_view text = line_.substr(begin, position_ - begin);
  expect(")");
  if (failed()) return {};
  const std::optional<Poly> value = parse_poly(text);
  if (!value) fail(fmt::format("'{}' is no size", text.substr(0, 40)));
  return value.value_or(Poly());
}

double Cursor::number() {
  skip_spaces();
  const size_t begin = position_;
  while (is_number_char(peek())) ++position_;
  double value = 0;
  const char* last = line_.data() + position_;
  const auto [end, problem] = std::from_chars(line_.data() + begin, last, value);
  if (problem != std::errc() || end != last) fail(fmt::format("expected a number at column {}", begin + 1));
  return failed() ? 0 : value;
}

double Cursor::hexadecimal() {
  const bool negative = accept("-");
  const bool digits = accept("0x");
  const size_t begin = position_;
  while (is_number_char(peek())) ++position_;
  double value = 0;
  const char* last = line_.data() + position_;
  const auto [end, problem] =
      std::from_chars(line_.data() + begin, last, value, digits ? std::chars_format::hex : std::chars_format::general);
  if (problem != std::errc() || end != last) fail(fmt::format("expected a number at column {}", begin + 1));
  return failed() ? 0 : negative ? -value : value;
}

ScalarValue Cursor::scalar() {
  skip_spaces();
  if (peek() == '(') return poly();
  return number();
}

AxisList Cursor::axis_list() {
  AxisList list;
  expect("[");
  while (!failed() && !accept("]")) {
    const int64_t value = accept("_") ? kNoAxis : integer(0, kNoAxis - 1);
    if (list.size() == kMaxRank) fail(fmt::format("more than {} axes", kMaxRank));
    if (!failed()) list.push_back(static_cast<int>(value));
  }
  return list;
}

std::vector<Poly> Cursor::polys() {
  std::vector<Poly> list;
  expect("[");
  while (!failed() && !accept("]")) {
    list.push_back(poly());
    if (list.size() > kMaxRank) fail(fmt::format("more than {} entries", kMaxRank));
  }
  return list;
}

std::vector<double> Cursor::numbers() {
  std::vector<double> list;
  expect("[");
  while (!failed() && !accept("]")) list.push_back(number());
  return list;
}

Poly Cursor::size() {
  skip_spaces();
  if (peek() == '(') return poly();
  const size_t begin = position_;
  while (is_bare_size_char(peek())) ++position_;
  const std::string_view text = line_.substr(begin, position_ - begin);
  const std::optional<Poly> value = parse_poly(text);
  if (!value) fail(fmt::format("'{}' is no size", text.substr(0, 40)));
  return value.value_or(Poly());
}

// name, name=size, "any name"=size, or the size alone: 3, =(seq - 1). No space stands before the sign.
Axis Cursor::axis() {
  skip_spaces();
  if (accept("=")) return {Name(), size()};
  if (peek() >= '0' && peek() <= '9') return {Name(), size()};
  if (peek() == '"') {
    const Name name = string();
    expect("=");
    return {name, size()};
  }
  const Name name = word();
  if (peek() == '=' && accept("=")) return {name, size()};
  return {name, failed() ? Poly() : Poly::dim(name)};
}

Type Cursor::type() {
  Type t;
  t.dtype = word_of([](std::string_view text) { return text == "real" ? std::optional(DType::real) : parse_dtype(text); }, "dtype");
  expect("[");
  while (!failed() && !accept("]")) {
    t.axes.push_back(axis());
    if (t.axes.size() > kMaxRank) fail(fmt::format("more than {} axes", kMaxRank));
  }
  return t;
}

SourceLocation Cursor::location() {
  SourceLocation at;
  at.file = string();
  expect(":");
  at.line = static_cast<uint32_t>(integer(0, UINT32_MAX));
  expect(":");
  at.column = static_cast<uint32_t>(integer(0, UINT32_MAX));
  expect("-");
  at.end_column = static_cast<uint32_t>(integer(0, UINT32_MAX));
  return at;
}

}  // namespace einc
