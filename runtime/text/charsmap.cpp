// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/charsmap.h"

namespace einc {
namespace {

uint32_t load_word(std::string_view bytes, size_t at) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i) word |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << 8 * i;
  return word;
}

// Fields of a unit of darts-clone. A unit with the highest bit is a value, and no byte's label has that bit.
uint32_t label_of(uint32_t unit) { return unit & 0x800000FFu; }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & 0x200u) >> 6); }
bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }

}  // namespace

std::optional<CharsMap> CharsMap::read(std::string_view bytes) {
  if (bytes.size() < 4) return std::nullopt;
  const size_t trie = load_word(bytes, 0);
  if (trie % 4 != 0 || trie > bytes.size() - 4 || trie == 0) return std::nullopt;
  CharsMap map;
  for (size_t at = 0; at < trie; at += 4) map.units_.push_back(load_word(bytes, 4 + at));
  map.replacements_ = bytes.substr(4 + trie);
  if (!map.replacements_.ends_with('\0')) return std::nullopt;
  return map;
}

std::optional<CharsMap::Match> CharsMap::find(std::string_view text, Which which) const {
  std::optional<Match> match;
  uint32_t node = offset_of(unit(0));
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    const uint32_t here = unit(node);
    if (label_of(here) != byte) break;
    node ^= offset_of(here);
    if (!has_value(here)) continue;
    const uint32_t start = unit(node) & 0x7FFFFFFFu;
    if (start < replacements_.size()) match = {i + 1, std::string_view(replacements_.data() + start)};
    if (which == Which::shortest) break;
  }
  return match;
}

}  // namespace einc
