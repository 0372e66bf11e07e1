// "did you mean": the candidate closest to a misspelt word.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace einc {

// By edit distance, at most a third of the word's length (one edit for short words); ties go to the first candidate.
inline std::optional<std::string> near_name(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > 64) return std::nullopt;
  size_t best = std::max<size_t>(1, word.size() / 3) + 1;
  std::optional<std::string> nearest;
  std::vector<size_t> row;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 64 || candidate == word) continue;
    row.resize(candidate.size() + 1);
    for (size_t j = 0; j <= candidate.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        const size_t substitute = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < best) best = row.back(), nearest = candidate;
  }
  return nearest;
}

}  // namespace einc
