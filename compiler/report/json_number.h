// SPDX-License-Identifier: Apache-2.0
// Numbers of the JSON reports.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>

#include "compiler/symbolic/rational.h"

namespace einc {

using Json = nlohmann::ordered_json;

// An integer as a number when a double holds it exactly, else as its digits.
inline Json exact(const std::optional<Rational>& value) {
  if (!value) return nullptr;
  if (!value->is_integer()) return value->to_double();
  const auto small = value->as_integer();
  constexpr int64_t kLimit = int64_t{1} << 62;
  if (small && *small > -kLimit && *small < kLimit && static_cast<int64_t>(static_cast<double>(*small)) == *small) return *small;
  return value->str();
}

inline Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace einc
