// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "runtime/base/printable.h"

namespace einc {

// "a, b, c, ..." of at most eight names; "none" of none.
inline std::string first_names(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + printable(names[i]);
  return names.empty() ? "none" : text + (names.size() > kShown ? ", ..." : "");
}

}  // namespace einc
