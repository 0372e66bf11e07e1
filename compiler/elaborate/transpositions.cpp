// SPDX-License-Identifier: Apache-2.0
// Names and places. An annotation and a signature bind names to axes by place, so a name that the value has at another place
// would be a transposition that nobody wrote: it is an error with the rearrange to write. A fn's generic names are its own;
// of these only two that the value has in the opposite order count.
#include <algorithm>

#include "compiler/elaborate/align.h"
#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/show.h"

namespace einc {
namespace {

// Where the value has the name: at its place when it can be there. An axis that the list names likewise is not another place.
std::optional<int> place_of(const std::vector<Axis>& axes, std::span<const NamedPlace> places, const NamedPlace& named) {
  if (axes[static_cast<size_t>(named.place)].name == named.name) return named.place;
  for (int i = 0; i < static_cast<int>(axes.size()); ++i) {
    const bool matched =
        std::any_of(places.begin(), places.end(), [&](const NamedPlace& other) { return other.place == i && other.name == named.name; });
    if (axes[static_cast<size_t>(i)].name == named.name && !matched) return i;
  }
  return std::nullopt;
}

const NamedPlace* find_transposed(const std::vector<Axis>& axes, std::span<const NamedPlace> places) {
  int last = -1;  // of the generic names so far
  for (const NamedPlace& named : places) {
    const auto found = place_of(axes, places, named);
    if (!found) continue;
    if (named.generic ? *found < last : *found != named.place) return &named;
    if (named.generic) last = *found;
  }
  return nullptr;
}

// For each place the axis that belongs there: the names at their places, the other axes at those that are left, in order.
std::vector<size_t> order_for(const std::vector<Axis>& axes, std::span<const NamedPlace> places) {
  std::vector<std::optional<size_t>> order(axes.size());
  std::vector<bool> placed(axes.size(), false);
  for (const NamedPlace& named : places) {
    const auto found = place_of(axes, places, named);
    if (!found || placed[static_cast<size_t>(*found)]) continue;
    order[static_cast<size_t>(named.place)] = static_cast<size_t>(*found);
    placed[static_cast<size_t>(*found)] = true;
  }
  std::vector<size_t> whole;
  for (size_t next = 0; const auto& from : order) {
    while (!from && placed[next]) ++next;
    whole.push_back(from ? *from : next++);
  }
  return whole;
}

// "key seq -> seq key"
std::string rearrangement(const std::vector<Axis>& axes, const std::vector<size_t>& order) {
  const std::vector<std::string> names = distinct_names(axes);
  std::string left, right;
  for (size_t i = 0; i < axes.size(); ++i) {
    left += names[i] + " ";
    right += " " + names[order[i]];
  }
  return left + "->" + right;
}

}  // namespace

bool Elaborator::check_places(const Type& found, std::span<const NamedPlace> places, std::string_view what, Span value, bool at_value) {
  const NamedPlace* wrong = find_transposed(found.axes, places);
  if (!wrong) return true;
  auto report = diagnostics_.report(Code::axes_transposed, at_value ? value : wrong->span, wrong->name, show(found), what);
  if (at_value)
    report.label(wrong->span, "`{}` in the signature", wrong->name);
  else
    report.label(value, "this is {}", show(found));
  const std::vector<size_t> order = order_for(found.axes, places);
  const bool fits = std::all_of(places.begin(), places.end(), [&](const NamedPlace& named) {
    const auto size = declared_size(named.name);
    return !size || *size == found.axis(static_cast<int>(order[static_cast<size_t>(named.place)])).size;
  });
  if (fits)
    report.hint("write rearrange({}, \"{}\"), or rename the axes of the value", quote(value), rearrangement(found.axes, order));
  else
    report.hint("no order of its axes fits: give another value, or rename them if they are others");
  return false;
}

}  // namespace einc
