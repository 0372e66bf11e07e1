// SPDX-License-Identifier: Apache-2.0
// Sets of labels as bits, and the product of the sizes in a set by table: eight labels per look-up.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace einc {

using LabelSet = std::vector<uint64_t>;  // all sets of one problem have the same number of words

inline LabelSet unite(const LabelSet& a, const LabelSet& b) {
  LabelSet result = a;
  for (size_t w = 0; w < result.size(); ++w) result[w] |= b[w];
  return result;
}

inline bool intersects(const LabelSet& a, const LabelSet& b) {
  for (size_t w = 0; w < a.size(); ++w)
    if ((a[w] & b[w]) != 0) return true;
  return false;
}

class SizeProducts {
 public:
  explicit SizeProducts(const std::vector<double>& sizes) : words_((sizes.size() + 63) / 64) {
    for (size_t first = 0; first < sizes.size(); first += 8) {
      auto& table = tables_.emplace_back();
      table[0] = 1;
      for (size_t bits = 1; bits < 256; ++bits) {
        size_t low = 0;
        while ((bits >> low & 1) == 0) ++low;
        const double size = first + low < sizes.size() ? sizes[first + low] : 1;
        table[bits] = table[bits & (bits - 1)] * size;
      }
    }
  }
  size_t words() const { return words_; }
  // Product of the sizes of the labels that `word(w)` holds, word by word.
  template <class WordAt>
  double product(WordAt word) const {
    double result = 1;
    for (size_t chunk = 0; chunk < tables_.size(); ++chunk) result *= tables_[chunk][word(chunk / 8) >> (chunk % 8 * 8) & 255];
    return result;
  }
  double product(const LabelSet& set) const {
    return product([&](size_t w) { return set[w]; });
  }

 private:
  size_t words_;
  std::vector<std::array<double, 256>> tables_;
};

}  // namespace einc
