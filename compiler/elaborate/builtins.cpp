// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/builtins.h"

#include <algorithm>
#include <unordered_map>

namespace einc {
namespace {

const std::unordered_map<std::string_view, BuiltinHandler>& table() {
  static const auto* const all = [] {
    auto* map = new std::unordered_map<std::string_view, BuiltinHandler>();
    for (const auto rows : builtin_tables())
      for (const Builtin& builtin : rows)
        EINC_CHECK(map->emplace(builtin.name, builtin.handler).second, "two built-ins named {}", builtin.name);
    return map;
  }();
  return *all;
}

}  // namespace

std::optional<BuiltinHandler> find_builtin(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::span<const Builtin>> builtin_tables() { return {pattern_builtins(), elementwise_builtins(), axis_builtins()}; }

std::vector<std::string> builtin_names() {
  std::vector<std::string> names;
  for (const auto& entry : table()) names.emplace_back(entry.first);
  std::sort(names.begin(), names.end());  // the table's own order is a hash's
  return names;
}

}  // namespace einc
