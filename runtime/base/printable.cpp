// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/printable.h"

#include <fmt/format.h>
#include <utf8proc.h>

namespace einc {
namespace {

constexpr size_t kMaxTextBytes = 1024;

bool is_word(unsigned char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}

// One code point at text[i]: appends it, escaped where it would not show, and returns its length in bytes.
size_t append_code_point(std::string& out, std::string_view text, size_t i) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  if (bytes[i] >= 0x20 && bytes[i] < 0x7F) {
    out += text[i];
    return 1;
  }
  if (bytes[i] < 0x80) {
    out += fmt::format("\\x{:02x}", bytes[i]);
    return 1;
  }
  utf8proc_int32_t code_point = 0;
  const utf8proc_ssize_t length = utf8proc_iterate(bytes + i, static_cast<utf8proc_ssize_t>(text.size() - i), &code_point);
  if (length <= 0) {
    out += fmt::format("\\x{:02x}", bytes[i]);
    return 1;
  }
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      out += fmt::format("\\u{{{:x}}}", code_point);
      break;
    default:
      out += text.substr(i, static_cast<size_t>(length));
  }
  return static_cast<size_t>(length);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  size_t word = 0;  // code points of the current word so far
  for (size_t i = 0; i < text.size();) {
    if (out.size() > kMaxTextBytes) return out + "...";
    word = is_word(static_cast<unsigned char>(text[i])) ? word + 1 : 0;
    if (word == kMaxShownIdentifier + 1) {
      out += "...";
      while (i < text.size() && is_word(static_cast<unsigned char>(text[i]))) ++i;
      continue;
    }
    i += append_code_point(out, text, i);
  }
  return out;
}

std::string quoted_name(std::string_view name) { return "'" + printable(name.substr(0, kMaxShownIdentifier)) + "'"; }

}  // namespace einc
