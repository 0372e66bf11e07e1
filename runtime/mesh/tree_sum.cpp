// SPDX-License-Identifier: Apache-2.0
// Of n terms the tree pairs aligned blocks of 2^k: ((0+1)+(2+3))+((4+5)+6) of 7. Terms are read block by block of elements, and as the bits
// of a counter tell which partial sums are due, at most one of each size waits: log2(n) + 1 blocks, in the first cache.
#include "runtime/mesh/tree_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "runtime/base/check.h"
#include "runtime/base/float_format.h"

namespace einc {
namespace {

constexpr int64_t kBlock = 512;       // elements of a partial sum: two dozen of these lie in the first cache
constexpr size_t kDeepest = 32;       // of a tree: 2^32 devices
constexpr int64_t kOneThread = 4096;  // elements that are not worth a second one

// How elements of a dtype lie, and what they are added in. `load`: a block of them, where it lies or in `room`.
template <class T>
struct Unrounded {
  using Sum = T;
  static const Sum* load(const std::byte* from, int64_t at, int64_t, Sum*) { return reinterpret_cast<const T*>(from) + at; }
  static void store(const Sum* from, int64_t at, int64_t count, std::byte* to) {
    std::memmove(to + at * static_cast<int64_t>(sizeof(T)), from, static_cast<size_t>(count) * sizeof(T));
  }
};

template <DType dtype>
struct Narrow {
  using Sum = float;
  using Bits = std::conditional_t<dtype == DType::bf16 || dtype == DType::f16, uint16_t, uint8_t>;
  static const Sum* load(const std::byte* from, int64_t at, int64_t count, Sum* room) {
    for (int64_t i = 0; i < count; ++i) {
      Bits bits;
      std::memcpy(&bits, from + (at + i) * static_cast<int64_t>(sizeof(Bits)), sizeof bits);
      if constexpr (dtype == DType::bf16)
        room[i] = std::bit_cast<float>(uint32_t{bits} << 16);
      else
        room[i] = static_cast<float>(decode_float(dtype, bits));
    }
    return room;
  }
  static void store(const Sum* from, int64_t at, int64_t count, std::byte* to) {
    for (int64_t i = 0; i < count; ++i) {
      const auto bits = static_cast<Bits>(encode_float(dtype, from[i]));
      std::memcpy(to + (at + i) * static_cast<int64_t>(sizeof(Bits)), &bits, sizeof bits);
    }
  }
};

// A NaN wins over every number.
template <class T>
T extreme(T a, T b, bool most) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  return most ? std::max(a, b) : std::min(a, b);
}

template <class T>
T wrapping(T a, T b, bool product) {
  if constexpr (std::is_floating_point_v<T>) {
    return product ? a * b : a + b;
  } else {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(product ? x * y : x + y);
  }
}

// left[i] and right[i], the left being of lower coordinates; `result` may be either of them. A whole block's loop has a length that the
// compiler knows: GCC 12 at -O2 makes vectors of no other (sums of two tensors of 28 MB: 25 instead of 10 GB/s, a thread of a Xeon).
template <class T>
void combine(ReduceKind reduce, const T* left, const T* right, int64_t count, T* result) {
  const auto each = [&](auto fn) {
    if (count == kBlock) {
#ifndef __clang__  // which does not know the pragma
#pragma GCC ivdep
#endif
      for (int64_t i = 0; i < kBlock; ++i) result[i] = fn(left[i], right[i]);
    } else {
      for (int64_t i = 0; i < count; ++i) result[i] = fn(left[i], right[i]);
    }
  };
  switch (reduce) {
    case ReduceKind::sum:
      return each([](T a, T b) { return wrapping(a, b, false); });
    case ReduceKind::prod:
      return each([](T a, T b) { return wrapping(a, b, true); });
    case ReduceKind::max:
      return each([](T a, T b) { return extreme(a, b, true); });
    case ReduceKind::min:
      return each([](T a, T b) { return extreme(a, b, false); });
    case ReduceKind::any:
      return each([](T a, T b) { return static_cast<T>(a != T(0) || b != T(0)); });
    case ReduceKind::all:
      return each([](T a, T b) { return static_cast<T>(a != T(0) && b != T(0)); });
  }
}

// Blocks wait for their right neighbour as the bits of the number of terms so far: at most one of each size.
template <class Format>
void reduce_range(ReduceKind reduce, std::span<const std::byte* const> terms, int64_t begin, int64_t end, std::byte* result) {
  using Sum = typename Format::Sum;
  std::array<std::array<Sum, kBlock>, kDeepest> room;
  std::array<const Sum*, kDeepest> waiting;  // blocks in `room`, and terms where they lie
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    size_t depth = 0;
    const auto join = [&] {
      --depth;
      combine(reduce, waiting[depth - 1], waiting[depth], count, room[depth - 1].data());
      waiting[depth - 1] = room[depth - 1].data();
    };
    for (size_t k = 0; k < terms.size(); ++k) {
      waiting[depth] = Format::load(terms[k], at, count, room[depth].data()), ++depth;
      for (size_t bits = k + 1; bits % 2 == 0; bits /= 2) join();
    }
    while (depth > 1) join();
    Format::store(waiting[0], at, count, result);
  }
}

template <class Format>
void reduce_all(ThreadPool& pool, ReduceKind reduce, std::span<const std::byte* const> terms, int64_t count, std::byte* result) {
  if (count < kOneThread) return reduce_range<Format>(reduce, terms, 0, count, result);
  pool.run(count, [&](int, int64_t begin, int64_t end) { reduce_range<Format>(reduce, terms, begin, end, result); });
}

template <class Format>
void scale_range(int64_t begin, int64_t end, typename Format::Sum by, std::byte* values) {
  std::array<typename Format::Sum, kBlock> block;
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    const auto* each = Format::load(values, at, count, block.data());
    for (int64_t i = 0; i < count; ++i) block[static_cast<size_t>(i)] = each[i] * by;
    Format::store(block.data(), at, count, values);
  }
}

template <class Format>
void scale_each(ThreadPool& pool, int64_t count, double by, std::byte* values) {
  const auto factor = static_cast<typename Format::Sum>(by);
  if (count < kOneThread) return scale_range<Format>(0, count, factor, values);
  pool.run(count, [&](int, int64_t begin, int64_t end) { scale_range<Format>(begin, end, factor, values); });
}

}  // namespace

void scale_all(ThreadPool& pool, DType dtype, int64_t count, double by, std::byte* values) {
  switch (dtype) {
    case DType::real:
    case DType::f32:
      return scale_each<Unrounded<float>>(pool, count, by, values);
    case DType::f64:
      return scale_each<Unrounded<double>>(pool, count, by, values);
    case DType::bf16:
      return scale_each<Narrow<DType::bf16>>(pool, count, by, values);
    case DType::f16:
      return scale_each<Narrow<DType::f16>>(pool, count, by, values);
    default:
      EINC_CHECK(false, "a mean of {}", to_string(dtype));
  }
}

void tree_reduce(ThreadPool& pool, ReduceKind reduce, DType dtype, std::span<const std::byte* const> terms, int64_t count,
                 std::byte* result) {
  switch (dtype) {
    case DType::real:
    case DType::f32:
      return reduce_all<Unrounded<float>>(pool, reduce, terms, count, result);
    case DType::f64:
      return reduce_all<Unrounded<double>>(pool, reduce, terms, count, result);
    case DType::bf16:
      return reduce_all<Narrow<DType::bf16>>(pool, reduce, terms, count, result);
    case DType::f16:
      return reduce_all<Narrow<DType::f16>>(pool, reduce, terms, count, result);
    case DType::f8e4m3:
      return reduce_all<Narrow<DType::f8e4m3>>(pool, reduce, terms, count, result);
    case DType::f8e5m2:
      return reduce_all<Narrow<DType::f8e5m2>>(pool, reduce, terms, count, result);
    case DType::i64:
      return reduce_all<Unrounded<int64_t>>(pool, reduce, terms, count, result);
    case DType::i32:
      return reduce_all<Unrounded<int32_t>>(pool, reduce, terms, count, result);
    case DType::u16:
      return reduce_all<Unrounded<uint16_t>>(pool, reduce, terms, count, result);
    case DType::u8:
    case DType::boolean:
      return reduce_all<Unrounded<uint8_t>>(pool, reduce, terms, count, result);
  }
}

}  // namespace einc
