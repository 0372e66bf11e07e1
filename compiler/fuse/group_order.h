// SPDX-License-Identifier: Apache-2.0
// Which groups must run before which, while groups are added and joined.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/fuse/shared_bits.h"

namespace einc {

class GroupOrder {
 public:
  // A new group that runs after `before`; its number counts up from 0.
  uint32_t add(std::span<const uint32_t> before);
  // `later` becomes part of `earlier`; nothing lies between them.
  void join(uint32_t earlier, uint32_t later);
  // `second` runs after `first`, which it does not precede.
  void require(uint32_t first, uint32_t second);

  // The group that `g` is part of by now.
  uint32_t now(uint32_t g) const;
  // Of groups that are not part of others.
  bool precedes(uint32_t a, uint32_t b) const { return bits_.has(groups_[b].ancestors, a); }
  bool lies_between(uint32_t a, uint32_t b) const;

 private:
  struct Group {
    SharedBits::Set ancestors;            // all that must run before, those joined to others included
    std::vector<uint32_t> before, after;  // direct ones, as they were numbered
  };

  // `later` learns of `earlier` and of all before it; whether that was new.
  bool pass_on(uint32_t earlier, uint32_t later);
  void spread(uint32_t from);

  SharedBits bits_;
  std::vector<Group> groups_;
  mutable std::vector<uint32_t> part_of_;  // itself at first; paths are shortened as they are walked
  std::vector<uint32_t> pending_;
};

}  // namespace einc
