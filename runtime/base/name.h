// SPDX-License-Identifier: Apache-2.0
// Interned strings. Axis names, dims and paths are compared far more often than they are printed, so a name is a
// 32-bit handle into one process-wide table that only grows (thread-safe). Handle 0 is the empty string.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace einc {

class Name {
 public:
  Name() = default;
  Name(std::string_view text);                                     // NOLINT: a string is a name
  Name(const std::string& text) : Name(std::string_view(text)) {}  // NOLINT
  Name(const char* text) : Name(std::string_view(text)) {}         // NOLINT
  // The text lives as long as the process.
  const std::string& str() const;
  bool empty() const { return id_ == 0; }
  uint32_t id() const { return id_; }
  friend bool operator==(Name a, Name b) { return a.id_ == b.id_; }

 private:
  uint32_t id_ = 0;
};

}  // namespace einc

template <>
struct std::hash<einc::Name> {
  size_t operator()(einc::Name n) const noexcept { return n.id() * size_t{0x9E3779B97F4A7C15u}; }
};
