// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/npy_header.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/data/npy.h"

namespace einc {
namespace {

// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and nothing else.
class Parser {
 public:
  Parser(const ByteSource& file, uint64_t offset, std::string_view text) : file_(file), offset_(offset), text_(text) {}

  NpyHeader parse() {
    expect('{');
    while (!accept('}')) {
      entry();
      if (accept(',')) continue;
      expect('}');
      break;
    }
    skip_spaces();
    if (position_ + 1 != text_.size() || peek() != '\n') fail("the header must end with spaces and a newline");
    for (const std::string_view missing : {has_descr_ ? "" : "descr", has_order_ ? "" : "fortran_order", has_shape_ ? "" : "shape"})
      if (!missing.empty()) fail(fmt::format("the header has no '{}'", missing));
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { file_.fail(offset_ + position_, what); }
  char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }
  void skip_spaces() {
    while (peek() == ' ') ++position_;
  }
  bool accept(char c) {
    skip_spaces();
    if (peek() != c) return false;
    ++position_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}' in the header", c));
  }
  bool accept_word(std::string_view word) {
    skip_spaces();
    if (!text_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }

  std::string_view string() {
    char quote = '\'';
    if (!accept(quote)) {
      quote = '"';
      if (!accept(quote)) fail("expected a string in the header");
    }
    const size_t end = text_.find(quote, position_);
    if (end == std::string_view::npos) fail("a string of the header is not closed");
    const std::string_view value = text_.substr(position_, end - position_);
    position_ = end + 1;
    return value;
  }

  void once(bool& seen, std::string_view name) {
    if (seen) fail(fmt::format("the header has '{}' twice", name));
    seen = true;
  }

  void entry() {
    const std::string_view name = string();
    expect(':');
    if (name == "descr") {
      once(has_descr_, name);
      descr();
    } else if (name == "fortran_order") {
      once(has_order_, name);
      if (accept_word("True"))
        header_.layout = Layout::column_major;
      else if (!accept_word("False"))
        fail("fortran_order must be True or False");
    } else if (name == "shape") {
      once(has_shape_, name);
      shape();
    } else {
      fail(fmt::format("the header has the unknown key '{}'", printable(name.substr(0, 64))));
    }
  }

  void descr() {
    if (accept('[')) fail("arrays of records are not supported");
    const std::string_view text = string();
    const char order = text.empty() ? '\0' : text[0];
    const std::string_view code = text.substr(text.empty() ? 0 : 1);
    const auto* found = std::find_if(kNpyCodes.begin(), kNpyCodes.end(), [&](const NpyCode& c) { return c.text == code; });
    const bool known = found != kNpyCodes.end();
    if (!known || (order != '<' && order != '>' && order != '|') || (order == '|' && bytes_of(found->dtype) > 1))
      fail(fmt::format("dtype '{}' is not supported; save the array as float64, float32, float16, int64, int32, uint16, uint8 or bool",
                       printable(text.substr(0, 64))));
    header_.dtype = found->dtype;
    header_.order = order == '>' ? ByteOrder::big : ByteOrder::little;
  }

  void shape() {
    expect('(');
    while (!accept(')')) {
      if (header_.shape.size() == kMaxNpyRank) fail(fmt::format("more than {} axes", kMaxNpyRank));
      header_.shape.push_back(size());
      if (accept(',')) continue;
      if (header_.shape.size() == 1) fail("expected ',' in the shape");
      expect(')');
      break;
    }
  }

  int64_t size() {
    skip_spaces();
    if (peek() < '0' || peek() > '9') fail("expected a size of the shape");
    int64_t value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++position_)
      if (__builtin_mul_overflow(value, int64_t{10}, &value) || __builtin_add_overflow(value, int64_t{peek() - '0'}, &value))
        fail("a size does not fit 63 bits");
    return value;
  }

  const ByteSource& file_;
  uint64_t offset_;
  std::string_view text_;
  size_t position_ = 0;
  NpyHeader header_;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

}  // namespace

NpyHeader parse_npy_header(const ByteSource& file, uint64_t offset, std::string_view text) { return Parser(file, offset, text).parse(); }

}  // namespace einc
