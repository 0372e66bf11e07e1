// SPDX-License-Identifier: Apache-2.0
// The order of groups, against paths searched in the graph of their members.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "compiler/fuse/group_order.h"

using namespace einc;

namespace {

// Nodes, what each reads, and the group that each is in.
struct Members {
  std::vector<std::vector<uint32_t>> reads;
  std::vector<uint32_t> group;

  bool reaches(uint32_t from, uint32_t to, uint32_t not_directly) const {
    std::vector<bool> seen(group.size(), false);
    std::vector<uint32_t> open;
    const auto enter = [&](uint32_t g) {
      if (seen[g]) return;
      seen[g] = true;
      open.push_back(g);
    };
    enter(to);
    while (!open.empty()) {
      const uint32_t g = open.back();
      open.pop_back();
      for (uint32_t node = 0; node < group.size(); ++node) {
        if (group[node] != g) continue;
        for (uint32_t read : reads[node]) {
          const uint32_t other = group[read];
          if (other == from && g != not_directly && other != g) return true;
          if (other != from) enter(other);
        }
      }
    }
    return false;
  }
  bool precedes(uint32_t a, uint32_t b) const { return reaches(a, b, UINT32_MAX); }
  bool lies_between(uint32_t a, uint32_t b) const { return reaches(a, b, b) || reaches(b, a, a); }
};

}  // namespace

TEST_CASE("the order of groups is that of the paths between them") {
  std::mt19937 draw(7);
  int joins = 0, refusals = 0;
  for (int round = 0; round < 60; ++round) {
    GroupOrder order;
    Members members;
    for (uint32_t node = 0; node < 90; ++node) {
      std::vector<uint32_t> before;
      members.reads.emplace_back();
      for (int k = draw() % 4; k > 0 && node > 0; --k) {
        const uint32_t read = draw() % 3 == 0 ? draw() % node : node - 1 - draw() % std::min(node, 8u);
        members.reads.back().push_back(read);
        const uint32_t g = members.group[read];
        if (std::find(before.begin(), before.end(), g) == before.end()) before.push_back(g);
      }
      REQUIRE(order.add(before) == node);
      members.group.push_back(node);
      uint32_t target = node;
      for (uint32_t earlier : before) {
        const uint32_t other = order.now(earlier);
        if (other == target) continue;
        REQUIRE(order.lies_between(other, target) == members.lies_between(other, target));
        if (order.lies_between(other, target)) {
          ++refusals;
          continue;
        }
        if (draw() % 2 == 0) continue;
        order.join(other, target);
        for (uint32_t& g : members.group)
          if (g == target) g = other;
        target = other;
        ++joins;
      }
    }
    for (uint32_t a = 0; a < members.group.size(); ++a) {
      REQUIRE(order.now(a) == members.group[a]);
      for (uint32_t b = 0; b < members.group.size(); ++b)
        if (members.group[a] == a && members.group[b] == b && a != b) REQUIRE(order.precedes(a, b) == members.precedes(a, b));
    }
  }
  CHECK(joins > 1000);
  CHECK(refusals > 100);
}

TEST_CASE("a required order holds for all that follows") {
  GroupOrder order;
  const uint32_t reader = order.add({}), maker = order.add({});
  const uint32_t from_maker[] = {maker};
  const uint32_t follower = order.add(from_maker);
  CHECK(!order.precedes(reader, maker));
  order.require(reader, maker);
  CHECK(order.precedes(reader, maker));
  CHECK(order.precedes(reader, follower));
  CHECK(!order.precedes(follower, reader));
}
