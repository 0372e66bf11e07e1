// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/group_order.h"

#include <algorithm>

namespace einc {

bool GroupOrder::pass_on(uint32_t earlier, uint32_t later) {
  const bool fresh = bits_.merge(groups_[later].ancestors, groups_[earlier].ancestors);
  return bits_.insert(groups_[later].ancestors, earlier) || fresh;
}

uint32_t GroupOrder::now(uint32_t g) const {
  while (part_of_[g] != g) g = part_of_[g] = part_of_[part_of_[g]];
  return g;
}

uint32_t GroupOrder::add(std::span<const uint32_t> before) {
  const auto own = static_cast<uint32_t>(groups_.size());
  part_of_.push_back(own);
  Group& group = groups_.emplace_back();
  group.before.assign(before.begin(), before.end());
  if (!before.empty()) bits_.copy(group.ancestors, groups_[before.front()].ancestors);
  for (uint32_t b : before) {
    pass_on(b, own);
    groups_[b].after.push_back(own);
  }
  return own;
}

// What follows a group follows its ancestors; a follower that knows them has told its own followers.
void GroupOrder::spread(uint32_t from) {
  pending_.push_back(from);
  while (!pending_.empty()) {
    const uint32_t g = pending_.back();
    pending_.pop_back();
    for (uint32_t numbered : groups_[g].after) {
      const uint32_t next = now(numbered);
      if (next == g) continue;
      if (pass_on(g, next)) pending_.push_back(next);
    }
  }
}

void GroupOrder::join(uint32_t earlier, uint32_t later) {
  Group &into = groups_[earlier], &from = groups_[later];
  part_of_[later] = earlier;
  const bool followed = !from.after.empty();
  bits_.erase(from.ancestors, earlier);
  const bool fresh = bits_.merge(into.ancestors, from.ancestors);
  into.before.insert(into.before.end(), from.before.begin(), from.before.end());
  into.after.insert(into.after.end(), from.after.begin(), from.after.end());
  from = Group{};
  if (fresh || followed) spread(earlier);
}

void GroupOrder::require(uint32_t first, uint32_t second) {
  groups_[first].after.push_back(second);
  groups_[second].before.push_back(first);
  if (pass_on(first, second)) spread(second);
}

// A path from one to the other through a third passes through a direct predecessor of its end.
bool GroupOrder::lies_between(uint32_t a, uint32_t b) const {
  const auto reaches = [&](uint32_t from, uint32_t to) {
    return std::any_of(groups_[to].before.begin(), groups_[to].before.end(), [&](uint32_t g) {
      const uint32_t p = now(g);
      return p != from && p != to && precedes(from, p);
    });
  };
  return reaches(a, b) || reaches(b, a);
}

}  // namespace einc
