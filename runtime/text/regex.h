// SPDX-License-Identifier: Apache-2.0
// A regular expression over UTF-8 text, by PCRE2: \s, \d, \w and classes are Unicode's. Patterns come from files, so the work that a
// match may take is bounded. One thread at a time.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace einc {

class Regex {
 public:
  // nullopt: no pattern that PCRE2 takes.
  static std::optional<Regex> compile(std::string_view pattern);

  // The first match in text[from ...] as [begin, end), not empty; nullopt: none. The text is UTF-8. Throws RuntimeFailure (data): a match
  // takes more steps than are allowed.
  std::optional<std::pair<size_t, size_t>> find(std::string_view text, size_t from) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;  // std::function, which holds these, wants copies
};

}  // namespace einc
