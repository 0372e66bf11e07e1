// SPDX-License-Identifier: Apache-2.0
// Whose bytes lie where: intervals of memory, each with an owner. Taking an interval ends what others own of it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>

namespace einc {

class MemoryOwners {
 public:
  using Owner = uint64_t;

  void take(int64_t from, int64_t to, Owner owner);
  // The first owner in the interval that is another (or nobody), if any.
  struct Stranger {
    std::optional<Owner> owner;
  };
  std::optional<Stranger> stranger(int64_t from, int64_t to, Owner owner) const;

 private:
  struct Interval {
    int64_t to;
    Owner owner;
  };
  void split(int64_t at);

  std::map<int64_t, Interval> intervals_;  // by their start; disjoint
};

}  // namespace einc
