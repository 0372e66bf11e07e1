// SPDX-License-Identifier: Apache-2.0
// A vector whose first N elements need no allocation. Moving one never throws, which boost's type does not say: a std::vector of what
// holds one moves its elements when it grows, where it would copy them all.
#pragma once
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace einc {

template <class T, std::size_t N>
class SmallVector : public boost::container::small_vector<T, N> {
  using Base = boost::container::small_vector<T, N>;
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>);

 public:
  using Base::Base;
  SmallVector() noexcept = default;
  SmallVector(const SmallVector&) = default;
  SmallVector& operator=(const SmallVector&) = default;
  // Takes the other's allocation, or moves elements into as much room as they had.
  SmallVector(SmallVector&& other) noexcept : Base(static_cast<Base&&>(other)) {}
  SmallVector& operator=(SmallVector&& other) noexcept {
    Base::operator=(static_cast<Base&&>(other));
    return *this;
  }
  ~SmallVector() = default;
};

}  // namespace einc
