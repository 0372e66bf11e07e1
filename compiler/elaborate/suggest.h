// SPDX-License-Identifier: Apache-2.0
// dsl/near_name for lists of strings.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/near_name.h"

namespace einc {

inline std::optional<std::string> near_name(std::string_view word, const std::vector<std::string>& candidates) {
  return near_name(word, std::vector<std::string_view>(candidates.begin(), candidates.end()));
}

}  // namespace einc
