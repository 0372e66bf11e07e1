// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/arena.h"

namespace einc {

void Arena::insert_free(int64_t offset, int64_t bytes) {
  free_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
}

void Arena::erase_free(std::map<int64_t, int64_t>::iterator it) {
  by_size_.erase({it->second, it->first});
  free_.erase(it);
}

std::optional<int64_t> Arena::allocate_inside(int64_t bytes) {
  const auto fit = by_size_.lower_bound({bytes, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const auto [length, offset] = *fit;
  erase_free(free_.find(offset));
  if (length > bytes) insert_free(offset + bytes, length - bytes);
  return offset;
}

int64_t Arena::allocate(int64_t bytes) {
  if (const auto inside = allocate_inside(bytes)) return *inside;
  int64_t offset = size_;
  if (!free_.empty()) {  // a free end grows
    const auto last = std::prev(free_.end());
    if (last->first + last->second == size_) {
      offset = last->first;
      erase_free(last);
    }
  }
  size_ = offset + bytes;
  return offset;
}

void Arena::release(int64_t offset, int64_t bytes) {
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    const auto gone = next++;
    erase_free(gone);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      erase_free(before);
    }
  }
  insert_free(offset, bytes);
}

}  // namespace einc
