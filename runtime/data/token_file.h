// SPDX-License-Identifier: Apache-2.0
// Files of tokens: raw little-endian numbers of 16 or 32 bits, nothing else (nanoGPT's), or the same behind llm.c's header of 1,024
// bytes (magic number, version, count). The numbers are mapped, not read: a file larger than memory does.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "runtime/data/file.h"

namespace einc {

enum class TokenFormat : uint8_t { u16, u32 };

inline constexpr uint64_t kTokenHeader = 1024;  // bytes of llm.c's header
inline size_t bytes_of(TokenFormat format) { return format == TokenFormat::u16 ? 2 : 4; }
inline std::string_view to_string(TokenFormat format) { return format == TokenFormat::u16 ? "u16" : "u32"; }

// By the ending of a path: u32 for .u32 and .u32.bin, u16 for all others.
TokenFormat token_format_of(std::string_view path);

class TokenFile {
 public:
  // The format is what the header says, else the one asked for, else what the name ends in.
  // Throws RuntimeFailure: resource, or data with the byte offset.
  explicit TokenFile(std::string path, std::optional<TokenFormat> asked = std::nullopt);

  const std::string& path() const { return file_.path(); }
  TokenFormat format() const { return format_; }
  uint64_t count() const { return count_; }  // of tokens
  // Tokens begin, begin + 1, ... into `out`; all of them are there. Throws RuntimeFailure (data) for a number of 2^31 or more, and
  // when the file has been cut short since it was opened.
  void read(uint64_t begin, std::span<int32_t> out) const;
  // Has the system start to read `count` tokens from `begin` on, which read() will want soon.
  void fetch(uint64_t begin, uint64_t count) const;
  uint64_t sample_hash() const { return file_.sample_hash(); }

 private:
  void read_header(std::optional<TokenFormat> asked);

  MappedFile file_;
  TokenFormat format_ = TokenFormat::u16;
  uint64_t begin_ = 0;  // of the first token, in bytes
  uint64_t count_ = 0;
};

}  // namespace einc
