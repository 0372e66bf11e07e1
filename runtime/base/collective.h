// SPDX-License-Identifier: Apache-2.0
// What the devices along a mesh axis do together.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace einc {

enum class CollectiveKind : uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all };
inline constexpr size_t kCollectiveKinds = 4;

inline std::string_view to_string(CollectiveKind kind) {
  static constexpr std::string_view kNames[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace einc
