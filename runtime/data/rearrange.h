// SPDX-License-Identifier: Apache-2.0
// An array's axes split, merged and put in another order, as einops writes it: "embed (three heads head) -> embed three heads head".
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/host_array.h"

namespace einc {

class Rearrangement {
 public:
  // Names, groups of names, and 1 for an axis of size 1. Throws RuntimeFailure (data), which says what is wrong with the pattern.
  explicit Rearrangement(std::string_view pattern);

  // The array in the shape of the pattern's right side; what the pattern's sizes do not say, the two shapes do. Throws RuntimeFailure
  // (data): they do not fit.
  HostArray apply(const HostArray& array, const std::vector<int64_t>& shape) const;

 private:
  using Side = std::vector<std::vector<size_t>>;  // axes, each a list of indices of names_
  Side parse_side(std::string_view text);
  // Of each name.
  std::vector<int64_t> sizes(const std::vector<int64_t>& from, const std::vector<int64_t>& to) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string pattern_;
  std::vector<std::string> names_;
  Side left_, right_;
};

}  // namespace einc
