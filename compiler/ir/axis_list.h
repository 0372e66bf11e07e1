// SPDX-License-Identifier: Apache-2.0
// A short list of axis positions or contraction labels, stored inline: tensors have at most kMaxRank axes, so the maps
// that every node carries need no allocation.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "runtime/base/check.h"

namespace einc {

inline constexpr int kMaxRank = 32;

class AxisList {
 public:
  AxisList() = default;
  AxisList(std::initializer_list<int> values) {
    for (int v : values) push_back(v);
  }
  static AxisList range(int count) {
    AxisList list;
    for (int i = 0; i < count; ++i) list.push_back(i);
    return list;
  }
  // 0 to count - 1 without those of `dropped`: where the axes of a reduction's result lie in its operand.
  static AxisList all_but(int count, const AxisList& dropped) {
    AxisList list;
    for (int i = 0; i < count; ++i)
      if (!dropped.contains(i)) list.push_back(i);
    return list;
  }
  void push_back(int value) {
    EINC_CHECK(size_ < kMaxRank && value >= 0 && value < 256, "axis list overflow: {} of {}", value, size_);
    data_[size_++] = static_cast<uint8_t>(value);
  }
  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int operator[](int i) const { return data_[static_cast<size_t>(i)]; }
  void set(int i, int value) { data_[static_cast<size_t>(i)] = static_cast<uint8_t>(value); }
  const uint8_t* begin() const { return data_.data(); }
  const uint8_t* end() const { return data_.data() + size_; }
  bool contains(int value) const { return std::find(begin(), end(), value) != end(); }
  // Position of the first `value`, or -1.
  int find(int value) const {
    const auto* it = std::find(begin(), end(), value);
    return it == end() ? -1 : static_cast<int>(it - begin());
  }
  // True for 0, 1, 2, ...
  bool is_identity() const {
    for (int i = 0; i < size_; ++i)
      if (data_[static_cast<size_t>(i)] != i) return false;
    return true;
  }
  friend bool operator==(const AxisList& a, const AxisList& b) { return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin()); }

 private:
  uint8_t size_ = 0;
  std::array<uint8_t, kMaxRank> data_{};
};

}  // namespace einc
