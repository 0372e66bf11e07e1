// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/byte_alphabet.h"

#include <charconv>

#include "runtime/text/utf8.h"

namespace einc {
namespace {

constexpr size_t kCharacters = 0x100 + 68;  // 68 bytes do not show

struct ByteAlphabet {
  std::array<int32_t, kCharacters> bytes;  // by character; -1: none
  std::array<int32_t, 256> characters;     // by byte
  constexpr ByteAlphabet() : bytes(), characters() {
    for (int32_t& byte : bytes) byte = -1;
    int32_t next = 0x100;
    for (int32_t byte = 0; byte < 256; ++byte) {
      const bool shows = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const int32_t character = shows ? byte : next++;
      characters[static_cast<size_t>(byte)] = character;
      bytes[static_cast<size_t>(character)] = byte;
    }
  }
};
constexpr ByteAlphabet kAlphabet;

}  // namespace

std::optional<std::string> bytes_of_name(std::string_view name) {
  std::string result;
  for (size_t at = 0; at < name.size();) {
    const CodePoint point = code_point_at(name, at);
    if (point.value < 0 || static_cast<size_t>(point.value) >= kCharacters || kAlphabet.bytes[static_cast<size_t>(point.value)] < 0)
      return std::nullopt;
    result += static_cast<char>(kAlphabet.bytes[static_cast<size_t>(point.value)]);
    at += point.length;
  }
  return result;
}

void append_name_of_bytes(std::string& name, std::string_view bytes) {
  for (const char byte : bytes) append_code_point(name, kAlphabet.characters[static_cast<unsigned char>(byte)]);
}

std::optional<char> byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return std::nullopt;
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, byte, 16);
  if (error != std::errc() || end != piece.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

}  // namespace einc
