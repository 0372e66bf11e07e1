// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/align.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "compiler/elaborate/scope.h"

namespace einc {
namespace {

// Where a name was first seen.
struct Place {
  size_t operand;
  int axis;
  int position;  // in the union of axes
};

// A repeated or nameless axis, which cannot be found by name.
std::optional<AlignProblem> find_unalignable(std::span<const std::vector<Axis>> operands) {
  for (size_t k = 0; k < operands.size(); ++k) {
    std::unordered_set<Name> seen;
    for (size_t i = 0; i < operands[k].size(); ++i) {
      const Axis& axis = operands[k][i];
      if (!axis.is_named()) return AlignProblem{AlignFault::nameless, k, static_cast<int>(i), 0, 0};
      if (!seen.insert(axis.name).second) return AlignProblem{AlignFault::repeated, k, static_cast<int>(i), 0, 0};
    }
  }
  return std::nullopt;
}

// Renumbers the union so that it follows `order`, a list of union positions that covers it.
Alignment reorder(const Alignment& alignment, const AxisList& order) {
  Alignment result;
  std::vector<int> position(alignment.axes.size());
  for (int i = 0; i < order.size(); ++i) {
    position[static_cast<size_t>(order[i])] = i;
    result.axes.push_back(alignment.axes[static_cast<size_t>(order[i])]);
  }
  for (const AxisList& map : alignment.maps) {
    AxisList renumbered;
    for (int p : map) renumbered.push_back(position[static_cast<size_t>(p)]);
    result.maps.push_back(renumbered);
  }
  return result;
}

// (h d) becomes h_d, a unit axis `one`.
std::string plain_name(const Axis& axis) {
  std::string plain;
  for (char c : axis.name.str()) {
    if (c == '(' || c == ')' || c == kForeignMark) continue;
    plain += c == ' ' ? '_' : c;
  }
  return plain.empty() ? "one" : plain;
}

}  // namespace

std::variant<Alignment, AlignProblem> align(std::span<const std::vector<Axis>> operands) {
  Alignment result;
  const std::vector<Axis>* first = nullptr;
  bool identical = true;
  for (const std::vector<Axis>& axes : operands) {
    if (axes.empty()) continue;
    if (first == nullptr) first = &axes;
    identical = identical && axes == *first;
  }
  if (identical) {
    if (first != nullptr) result.axes = *first;
    for (const std::vector<Axis>& axes : operands) result.maps.push_back(AxisList::range(static_cast<int>(axes.size())));
    return result;
  }
  if (const auto problem = find_unalignable(operands)) return *problem;

  std::unordered_map<Name, Place> places;
  for (const std::vector<Axis>& axes : operands)
    for (const Axis& axis : axes) places.try_emplace(axis.name, Place{});
  if (places.size() > static_cast<size_t>(kMaxRank))
    return AlignProblem{AlignFault::too_many_axes, operands.size() - 1, static_cast<int>(places.size()), 0, 0};
  places.clear();

  for (size_t k = 0; k < operands.size(); ++k) {
    AxisList map;
    for (size_t i = 0; i < operands[k].size(); ++i) {
      const Axis& axis = operands[k][i];
      const auto [place, is_new] = places.try_emplace(axis.name, Place{k, static_cast<int>(i), static_cast<int>(result.axes.size())});
      if (is_new) result.axes.push_back(axis);
      const Place& known = place->second;
      if (result.axes[static_cast<size_t>(known.position)].size != axis.size)
        return AlignProblem{AlignFault::sizes_differ, k, static_cast<int>(i), known.operand, known.axis};
      map.push_back(known.position);
    }
    result.maps.push_back(map);
  }
  for (const AxisList& map : result.maps)
    if (map.size() == static_cast<int>(result.axes.size())) return reorder(result, map);
  return result;
}

std::vector<Axis> missing_from(const std::vector<Axis>& others, const std::vector<Axis>& axes) {
  std::vector<Axis> missing;
  for (const Axis& axis : axes)
    if (std::none_of(others.begin(), others.end(), [&](const Axis& other) { return other.name == axis.name; })) missing.push_back(axis);
  return missing;
}

std::optional<std::pair<Axis, Axis>> same_size(const std::vector<Axis>& left, const std::vector<Axis>& right, const Bindings& values) {
  std::optional<std::pair<Axis, Axis>> by_value;
  for (const Axis& mine : missing_from(right, left))
    for (const Axis& theirs : missing_from(left, right)) {
      if (mine.size == theirs.size) return std::pair(mine, theirs);
      const auto size = mine.size.evaluate(values);
      if (!by_value && size && size == theirs.size.evaluate(values)) by_value = {mine, theirs};
    }
  return by_value;
}

std::vector<std::string> distinct_names(std::span<const Axis> axes, int rename) {
  std::unordered_set<std::string> taken;  // names that stay as they are, then those made up
  std::vector<bool> stays(axes.size(), false);
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].is_named() && (static_cast<int>(i) != rename || taken.contains(axes[i].name.str())))
      stays[i] = taken.insert(plain_name(axes[i])).second;
  if (rename >= 0) taken.insert(plain_name(axes[static_cast<size_t>(rename)]));
  std::vector<std::string> names;
  for (size_t i = 0; i < axes.size(); ++i) {
    std::string name = plain_name(axes[i]);
    const std::string stem = name;
    for (int n = 2; !stays[i] && !taken.insert(name).second; ++n) name = fmt::format("{}_{}", stem, n);
    names.push_back(std::move(name));
  }
  return names;
}

std::string suggest_annotation(std::span<const Axis> axes, int rename) {
  return fmt::format("[{}]", fmt::join(distinct_names(axes, rename), " "));
}

}  // namespace einc
