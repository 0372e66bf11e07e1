// SPDX-License-Identifier: Apache-2.0
// Vectors of four floats, which every arm64 processor has.
#if defined(__aarch64__)
#include <arm_neon.h>

#include <chrono>

#include "runtime/cpu/peak_loops.h"

namespace einc {
namespace {

constexpr int kChains = 16;  // independent sums: four pipelines of four cycles

float multiply_add_128(int64_t rounds) {
  float32x4_t sums[kChains];
  const float32x4_t x = vdupq_n_f32(1.0F), y = vdupq_n_f32(1e-9F);
  for (auto& s : sums) s = x;
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 16
    for (int k = 0; k < kChains; ++k) sums[k] = vfmaq_f32(sums[k], x, y);
  float total = 0;
  for (auto& s : sums) total += vaddvq_f32(s);
  return total;
}

}  // namespace

PeakLoop multiply_add_loop() { return {multiply_add_128, 8 * kChains, 2 * 8}; }
std::optional<PeakLoop> bf16_loop() { return std::nullopt; }

void copy_past_caches(const float* from, float* to, int64_t count) { copy_within_caches(from, to, count); }

void triad_past_caches(const float* b, const float* c, float* a, int64_t count) {
  const float32x4_t scale = vdupq_n_f32(3.0F);
  for (int64_t i = 0; i < count; i += 4) vst1q_f32(a + i, vfmaq_f32(vld1q_f32(b + i), scale, vld1q_f32(c + i)));
}

void copy_within_caches(const float* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; i += 4) vst1q_f32(to + i, vld1q_f32(from + i));
}

// Sums of 64 bits: a cycle each (Arm's optimization guides: Cortex-A55 to Neoverse V2).
const int64_t kCyclesOfLink = 1;

double chain_seconds(int64_t links) {
  uint64_t value = 3;
  const uint64_t other = 5;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < links; i += 8)
    for (int k = 0; k < 8; ++k) asm volatile("add %0, %0, %1" : "+r"(value) : "r"(other));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace einc
#endif
