// SPDX-License-Identifier: Apache-2.0
// By the bits of the exponent, in blocks without branches: a step looks at all its gradients.
#include "runtime/mesh/finite.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace einc {
namespace {

constexpr int64_t kWorthThreads = 32768;  // elements: a thread looks at them in about 10 us

// An infinity or NaN has all bits of the exponent set; `mask` are these.
template <class Bits>
bool none_has(Bits mask, int64_t begin, int64_t end, const std::byte* memory) {
  constexpr int64_t kBlock = 1024;
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    const std::byte* block = memory + at * static_cast<int64_t>(sizeof(Bits));
    Bits found = 0;
    const auto look = [&](int64_t i) {
      Bits bits;
      std::memcpy(&bits, block + i * static_cast<int64_t>(sizeof(Bits)), sizeof bits);
      found = static_cast<Bits>(found | static_cast<Bits>((bits & mask) == mask));
    };
    // Vectors where the compiler knows the length (GCC 12 at -O2).
    if (count == kBlock)
      for (int64_t i = 0; i < kBlock; ++i) look(i);
    else
      for (int64_t i = 0; i < count; ++i) look(i);
    if (found != 0) return false;
  }
  return true;
}

template <class Bits>
bool none_has(ThreadPool& pool, Bits mask, int64_t count, const std::byte* memory) {
  if (count < kWorthThreads) return none_has(mask, 0, count, memory);
  std::atomic<bool> fine{true};
  pool.run(count, [&](int, int64_t begin, int64_t end) {
    if (!none_has(mask, begin, end, memory)) fine = false;
  });
  return fine;
}

}  // namespace

bool holds_numbers(ThreadPool& pool, DType dtype, int64_t count, const std::byte* memory) {
  switch (dtype) {
    case DType::real:
    case DType::f32:
      return none_has<uint32_t>(pool, 0x7f800000U, count, memory);
    case DType::f64:
      return none_has<uint64_t>(pool, 0x7ff0000000000000U, count, memory);
    case DType::bf16:
      return none_has<uint16_t>(pool, 0x7f80U, count, memory);
    case DType::f16:
      return none_has<uint16_t>(pool, 0x7c00U, count, memory);
    case DType::f8e4m3:  // no infinity, and one NaN of each sign
      return none_has<uint8_t>(pool, 0x7fU, count, memory);
    case DType::f8e5m2:
      return none_has<uint8_t>(pool, 0x7cU, count, memory);
    case DType::i64:
    case DType::i32:
    case DType::u16:
    case DType::u8:
    case DType::boolean:
      return true;
  }
  return true;
}

}  // namespace einc
