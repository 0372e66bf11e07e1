// SPDX-License-Identifier: Apache-2.0
// What a tensor of a program is, and memory that holds one. Elements are row-major without gaps, in the byte order of the
// machine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "einc/dtype.h"

namespace einc {

struct TensorInfo {
  std::string name;  // an input's or output's name, the path of a param or state: "h.0.attn.w"
  DType dtype = DType::f32;
  std::vector<std::string> axes;  // a unit axis has the empty name
  std::vector<int64_t> shape;     // one size per axis; a scalar has none

  int64_t count() const;  // of elements
  int64_t bytes() const;
  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

// The dtype that a C++ type stands for.
template <class T>
constexpr DType dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<U, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<U, bool>)
    return DType::boolean;
  else if constexpr (std::is_integral_v<U> && sizeof(U) == 8 && std::is_signed_v<U>)
    return DType::i64;
  else if constexpr (std::is_integral_v<U> && sizeof(U) == 4 && std::is_signed_v<U>)
    return DType::i32;
  else if constexpr (std::is_integral_v<U> && sizeof(U) == 2 && std::is_unsigned_v<U>)
    return DType::u16;
  else {
    static_assert(std::is_integral_v<U> && sizeof(U) == 1 && std::is_unsigned_v<U>, "no dtype has this C++ type");
    return DType::u8;
  }
}

[[noreturn]] void throw_wrong_type(DType dtype, DType asked);
[[noreturn]] void throw_null_view();

// Somebody else's memory, to read.
class TensorView {
 public:
  TensorView(DType dtype, std::vector<int64_t> shape, const void* data) : dtype_(dtype), shape_(std::move(shape)), data_(data) {}

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  const void* data() const { return data_; }
  int64_t count() const;
  int64_t bytes() const;

  // The elements as they lie. Throws Error (usage) when T is not the C++ type of the dtype, or data() is null.
  template <class T>
  std::span<const T> as() const {
    if (dtype_of<T>() != dtype_) throw_wrong_type(dtype_, dtype_of<T>());
    if (data_ == nullptr && count() > 0) throw_null_view();
    return {static_cast<const T*>(data_), static_cast<size_t>(count())};
  }
  // The elements as numbers, whatever the dtype. Throws Error (usage) when data() is null.
  std::vector<double> to_doubles() const;

 private:
  DType dtype_;
  std::vector<int64_t> shape_;
  const void* data_;
};

}  // namespace einc
