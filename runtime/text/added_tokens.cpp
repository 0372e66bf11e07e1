// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/added_tokens.h"

#include "runtime/text/json_fields.h"
#include "runtime/text/split_words.h"
#include "runtime/text/utf8.h"

namespace einc {

std::vector<AddedToken> read_added_tokens(const nlohmann::json& object) {
  std::vector<AddedToken> tokens;
  for (const nlohmann::json& row : list_field(object, "added_tokens")) {
    const nlohmann::json* number = find_field(row, "id");
    AddedToken token{text_field(row, "content"), -1, flag_field(row, "lstrip"), flag_field(row, "rstrip"), flag_field(row, "normalized")};
    if (!number || !number->is_number_unsigned() || number->get<uint64_t>() > 0x7FFFFFFF)
      refuse(fmt::format("the added token '{}' has no number", token.content));
    if (flag_field(row, "single_word")) refuse(fmt::format("the added token '{}' that is found as a single word", token.content));
    token.token = number->get<int32_t>();
    tokens.push_back(std::move(token));
  }
  return tokens;
}

void AddedTokenFinder::divide(std::string_view text, const std::function<void(size_t, size_t)>& between,
                              const std::function<void(int32_t)>& token) const {
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const PieceTrie::Match match = trie_.longest(text.substr(at));
    if (match.length == 0) {
      ++at;
      continue;
    }
    const AddedToken& found = tokens_[static_cast<size_t>(match.id)];
    size_t begin = at;
    at += match.length;
    while (found.takes_left && begin > done) {
      size_t last = begin - 1;
      while (last > done && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
      if (!is_white_space(code_point_at(text, last).value)) break;
      begin = last;
    }
    while (found.takes_right && at < text.size() && is_white_space(code_point_at(text, at).value)) at += code_point_at(text, at).length;
    if (begin > done) between(done, begin);
    token(found.token);
    done = at;
  }
  if (done < text.size()) between(done, text.size());
}

}  // namespace einc
