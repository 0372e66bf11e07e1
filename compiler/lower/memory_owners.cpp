// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/memory_owners.h"

namespace einc {

// Intervals begin or end at `at`, none lies across it.
void MemoryOwners::split(int64_t at) {
  auto after = intervals_.upper_bound(at);
  if (after == intervals_.begin()) return;
  auto& [from, interval] = *std::prev(after);
  if (from == at || interval.to <= at) return;
  intervals_.emplace_hint(after, at, interval);
  interval.to = at;
}

void MemoryOwners::take(int64_t from, int64_t to, Owner owner) {
  if (from >= to) return;
  split(from), split(to);
  intervals_.erase(intervals_.lower_bound(from), intervals_.lower_bound(to));
  intervals_.emplace(from, Interval{to, owner});
}

std::optional<MemoryOwners::Stranger> MemoryOwners::stranger(int64_t from, int64_t to, Owner owner) const {
  auto next = intervals_.upper_bound(from);
  if (next != intervals_.begin()) --next;
  for (int64_t at = from; at < to; ++next) {
    if (next == intervals_.end() || next->first > at) return Stranger{};
    if (next->second.to <= at) continue;
    if (next->second.owner != owner) return Stranger{next->second.owner};
    at = next->second.to;
  }
  return std::nullopt;
}

}  // namespace einc
