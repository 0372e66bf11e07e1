// SPDX-License-Identifier: Apache-2.0
// UTF-8, one code point at a time. A byte that begins none is one of its own, so that any bytes can be walked through.
#pragma once
#include <utf8proc.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace einc {

struct CodePoint {
  int32_t value;  // -1: the byte is not UTF-8
  uint32_t length;
};

// At text[at], which is there.
inline CodePoint code_point_at(std::string_view text, size_t at) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
  if (bytes[0] < 0x80) return {bytes[0], 1};
  utf8proc_int32_t value = 0;
  const utf8proc_ssize_t length = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - at), &value);
  return length > 0 ? CodePoint{value, static_cast<uint32_t>(length)} : CodePoint{-1, 1};
}

// The first byte that is not UTF-8; npos: there is none.
inline size_t find_no_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.value < 0) return at;
    at += point.length;
  }
  return std::string_view::npos;
}

inline void append_code_point(std::string& text, int32_t value) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t length = utf8proc_encode_char(value, bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

}  // namespace einc
