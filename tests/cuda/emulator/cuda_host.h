// SPDX-License-Identifier: Apache-2.0
// In front of CUDA C++ that is compiled for the host instead of by NVRTC: CUDA's words, and what the prelude has in PTX.
#pragma once
#include "emulated_thread.h"

#define EINC_EMULATED 1
#define __CUDA_ARCH__ 900
#define __global__
#define __device__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline, unused))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static __attribute__((section("einc_shared")))  // poisoned before every block

static const EmuScheduler* emu;
extern "C" {
extern char __start_einc_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_einc_shared[] __attribute__((weak, visibility("hidden")));
EmuShared einc_bind(const EmuScheduler* scheduler) {
  emu = scheduler;
  return {__start_einc_shared, __stop_einc_shared};
}
}
#define EINC_SHARED(name) unsigned char* name = (*emu->current)->shared
#define threadIdx ((*emu->current)->thread)
#define blockIdx ((*emu->current)->block)
#define blockDim ((*emu->current)->block_size)
#define gridDim ((*emu->current)->grid_size)
#define __syncthreads() emu->block_barrier(__LINE__)
#define __threadfence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __threadfence_block() __atomic_thread_fence(__ATOMIC_SEQ_CST)

template <class T>
inline T emu_shuffle(unsigned mask, T value, int from) {
  static_assert(sizeof(T) <= sizeof(EmuSlot), "a shuffle of too many bytes");
  EmuSlot slot{};
  __builtin_memcpy(slot.words, &value, sizeof value);
  const EmuSlot* all = emu->collective(mask, &slot);
  if (!(mask >> from & 1)) emu->fail("a shuffle reads a lane outside its mask");
  T result;
  __builtin_memcpy(&result, all[from].words, sizeof result);
  return result;
}
inline int emu_lane() { return static_cast<int>((*emu->current)->lane); }
// Where lane `from` of this lane's segment of so many lanes lies; outside the segment: this lane.
inline int emu_source(int from, int width) {
  const int first = emu_lane() / width * width;
  return from < first || from >= first + width ? emu_lane() : from;
}
template <class T>
inline T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  return emu_shuffle(mask, value, emu_lane() / width * width + from % width);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  return emu_shuffle(mask, value, emu_source(emu_lane() ^ bits, width));
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
  return emu_shuffle(mask, value, emu_source(emu_lane() + static_cast<int>(by), width));
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
  return emu_shuffle(mask, value, emu_source(emu_lane() - static_cast<int>(by), width));
}
inline void __syncwarp(unsigned mask = ~0u) {
  EmuSlot slot{};
  emu->collective(mask, &slot);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  EmuSlot slot{};
  slot.words[0] = predicate != 0;
  const EmuSlot* all = emu->collective(mask, &slot);
  unsigned result = 0;
  for (int i = 0; i < 32; ++i)
    if (mask >> i & 1) result |= all[i].words[0] << i;
  return result;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }
inline unsigned __activemask() { return ~0u; }

template <class T, class U>
inline T atomicAdd(T* p, U value) {
  static_assert(static_cast<T>(0.5) == 0, "sums of floats by atomics have no order");
  return __atomic_fetch_add(p, static_cast<T>(value), __ATOMIC_RELAXED);
}
template <class T>
inline T atomicCAS(T* p, T expected, T value) {
  __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
template <class T>
inline T atomicExch(T* p, T value) {
  return __atomic_exchange_n(p, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicMax(T* p, T value) {
  T held = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (held < value && !__atomic_compare_exchange_n(p, &held, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return held;
}
template <class T>
inline T atomicMin(T* p, T value) {
  T held = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (value < held && !__atomic_compare_exchange_n(p, &held, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return held;
}

#include "host_math.h"
#include "host_tiles.h"

// How the scheduler calls a kernel: einc_call_NAME and einc_bytes_NAME are made of these for every kernel, behind its text.
template <unsigned... I>
struct EmuIndices {};
template <unsigned N, unsigned... I>
struct EmuMakeIndices : EmuMakeIndices<N - 1, N - 1, I...> {};
template <unsigned... I>
struct EmuMakeIndices<0, I...> {
  using Type = EmuIndices<I...>;
};
template <class... A, unsigned... I>
inline void emu_apply(void (*kernel)(A...), void** arguments, EmuIndices<I...>) {
  kernel(*static_cast<A*>(arguments[I])...);
}
template <class... A>
inline void emu_call(void (*kernel)(A...), void** arguments) {
  emu_apply(kernel, arguments, typename EmuMakeIndices<sizeof...(A)>::Type());
}
template <class... A>
inline const int* emu_bytes(void (*)(A...)) {
  static const int bytes[] = {static_cast<int>(sizeof(A))..., 0};
  return bytes;
}
