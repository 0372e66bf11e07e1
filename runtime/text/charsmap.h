// SPDX-License-Identifier: Apache-2.0
// A table of replacements as sentencepiece compiles it into its models: a double-array trie of the strings to replace, in units of 32
// bits as darts-clone lays them out, and behind it the replacements, each ended by a zero. Read as hostile: every index is checked.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace einc {

class CharsMap {
 public:
  // nullopt: the bytes are no such table.
  static std::optional<CharsMap> read(std::string_view bytes);

  struct Match {
    size_t length;  // of what is replaced, in bytes
    std::string_view replacement;
  };
  // The longest string of the table that the text begins with; nullopt: none.
  std::optional<Match> longest(std::string_view text) const { return find(text, Which::longest); }
  std::optional<Match> shortest(std::string_view text) const { return find(text, Which::shortest); }

 private:
  enum class Which : uint8_t { shortest, longest };
  CharsMap() = default;
  std::optional<Match> find(std::string_view text, Which which) const;
  uint32_t unit(uint32_t index) const { return index < units_.size() ? units_[index] : 0; }

  std::vector<uint32_t> units_;
  std::string replacements_;  // ends with a zero
};

}  // namespace einc
