// SPDX-License-Identifier: Apache-2.0
// Offsets in one growing interval: best fit among free intervals (the smallest that is large enough, lowest offset first),
// neighbours merged on release. The size is the high-water mark.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace einc {

class Arena {
 public:
  int64_t allocate(int64_t bytes);
  std::optional<int64_t> allocate_inside(int64_t bytes);  // only where it does not grow
  void release(int64_t offset, int64_t bytes);
  int64_t size() const { return size_; }

 private:
  void insert_free(int64_t offset, int64_t bytes);
  void erase_free(std::map<int64_t, int64_t>::iterator it);
  std::map<int64_t, int64_t> free_;                // offset -> bytes
  std::set<std::pair<int64_t, int64_t>> by_size_;  // (bytes, offset)
  int64_t size_ = 0;
};

}  // namespace einc
