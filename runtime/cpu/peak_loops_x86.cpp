// SPDX-License-Identifier: Apache-2.0
// Vectors of 16 or 8 floats, products of bf16 pairs and of tiles, streaming stores.
#if defined(__x86_64__)
#include <immintrin.h>

#include <chrono>

#include "runtime/base/matrix_tiles.h"
#include "runtime/cpu/peak_loops.h"

namespace einc {
namespace {

constexpr int kChains = 12;  // independent sums: enough to fill the pipelines

__attribute__((target("avx512f"))) float multiply_add_512(int64_t rounds) {
  __m512 sums[kChains], x = _mm512_set1_ps(1.0F), y = _mm512_set1_ps(1e-9F);
  for (auto& s : sums) s = x;
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) sums[k] = _mm512_fmadd_ps(x, y, sums[k]);
  float total = 0, lanes[16];
  for (auto& s : sums) {
    _mm512_storeu_ps(lanes, s);
    for (float lane : lanes) total += lane;
  }
  return total;
}

__attribute__((target("avx2,fma"))) float multiply_add_256(int64_t rounds) {
  __m256 sums[kChains], x = _mm256_set1_ps(1.0F), y = _mm256_set1_ps(1e-9F);
  for (auto& s : sums) s = x;
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) sums[k] = _mm256_fmadd_ps(x, y, sums[k]);
  float total = 0, lanes[8];
  for (auto& s : sums) {
    _mm256_storeu_ps(lanes, s);
    for (float lane : lanes) total += lane;
  }
  return total;
}

__attribute__((target("avx512f,avx512bf16"))) float dot_512(int64_t rounds) {
  __m512 sums[kChains];
  const __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1.0F), _mm512_set1_ps(1.0F)),
                 y = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1e-9F), _mm512_set1_ps(1e-9F));
  for (auto& s : sums) s = _mm512_set1_ps(1.0F);
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) sums[k] = _mm512_dpbf16_ps(sums[k], x, y);
  float total = 0, lanes[16];
  for (auto& s : sums) {
    _mm512_storeu_ps(lanes, s);
    for (float lane : lanes) total += lane;
  }
  return total;
}

// A product of tiles takes as long as so many of the others.
constexpr int64_t kTileProducts = 16;
constexpr double kTileFlops = 2 * 16 * 16 * 32;

__attribute__((target("amx-tile,amx-bf16"))) float multiply_tiles(int64_t rounds) {
  struct {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
  } setting;
  _tile_loadconfig(&setting);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (int64_t i = 0; i < rounds / kTileProducts; ++i)
    for (int k = 0; k < kChains / 4; ++k) {
      _tile_dpbf16ps(0, 4, 5);
      _tile_dpbf16ps(1, 4, 5);
      _tile_dpbf16ps(2, 4, 5);
      _tile_dpbf16ps(3, 4, 5);
    }
  float sums[16 * 16];
  _tile_stored(0, sums, 64);
  _tile_release();
  return sums[0];
}

}  // namespace

PeakLoop multiply_add_loop() {
  if (__builtin_cpu_supports("avx512f")) return {multiply_add_512, 32 * kChains, 2 * 32};
  return {multiply_add_256, 16 * kChains, 2 * 16};
}

std::optional<PeakLoop> bf16_loop() {
  if (enable_matrix_tiles()) return PeakLoop{multiply_tiles, kTileFlops / kTileProducts * kChains, kTileFlops / kTileProducts};
  if (__builtin_cpu_supports("avx512bf16")) return PeakLoop{dot_512, 64 * kChains, 2 * 64};
  return std::nullopt;
}

__attribute__((target("avx2"))) void copy_past_caches(const float* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; i += 8) _mm256_stream_ps(to + i, _mm256_load_ps(from + i));
  _mm_sfence();
}

__attribute__((target("avx2,fma"))) void triad_past_caches(const float* b, const float* c, float* a, int64_t count) {
  const __m256 scale = _mm256_set1_ps(3.0F);
  for (int64_t i = 0; i < count; i += 8) _mm256_stream_ps(a + i, _mm256_fmadd_ps(scale, _mm256_load_ps(c + i), _mm256_load_ps(b + i)));
  _mm_sfence();
}

__attribute__((target("avx2"))) void copy_within_caches(const float* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; i += 8) _mm256_store_ps(to + i, _mm256_load_ps(from + i));
}

// 64-bit products: three cycles each on every x86-64 processor with AVX2 (Agner Fog, instruction tables: Haswell to Zen 5). Sums would
// not do: some processors work off chains of them while they rename registers.
const int64_t kCyclesOfLink = 3;

double chain_seconds(int64_t links) {
  uint64_t value = 3;
  const uint64_t factor = 5;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < links; i += 8)
    for (int k = 0; k < 8; ++k) asm volatile("imul %1, %0" : "+r"(value) : "r"(factor));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace einc
#endif
