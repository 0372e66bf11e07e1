// SPDX-License-Identifier: Apache-2.0
#include "dsl/near_name.h"

#include <algorithm>
#include <array>

namespace einc {
namespace {
constexpr size_t kMaxLength = 64;

std::string small(std::string_view text) {
  std::string out(text.substr(0, kMaxLength + 1));
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}
}  // namespace

size_t edit_distance(std::string_view a, std::string_view b, size_t limit) {
  const size_t gap = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (gap > limit || a.size() > kMaxLength || b.size() > kMaxLength) return limit + 1;
  using Row = std::array<size_t, kMaxLength + 1>;
  Row before_last{}, last{}, row{};
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return std::min(last[b.size()], limit + 1);
}

std::optional<std::string> near_name(std::string_view wanted, const std::vector<std::string_view>& candidates) {
  size_t limit = std::max<size_t>(1, wanted.size() / 3);
  if (wanted.size() < 2) return std::nullopt;  // every letter is near every other
  std::optional<std::string> best;
  const std::string letters = small(wanted);
  for (const std::string_view candidate : candidates) {
    const size_t distance = edit_distance(letters, small(candidate), limit);
    if (distance > limit || distance >= candidate.size()) continue;
    best = std::string(candidate);
    if (distance == 0) break;
    limit = distance - 1;
  }
  return best;
}

}  // namespace einc
