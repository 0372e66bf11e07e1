// SPDX-License-Identifier: Apache-2.0
// The processor's clock, from a chain of instructions that each wait for the one before. Other work on the machine can only make a
// sample longer, so the shortest of many small ones tells the clock even where half a second of multiply-adds would not be let alone.
#include <chrono>
#include <cstdint>

#include "runtime/cpu/peak.h"

namespace einc {
namespace {

// 64-bit products: three cycles each on every x86-64 processor with AVX2 (Agner Fog, instruction tables: Haswell to Zen 5). Sums would
// not do: some processors work off chains of them while they rename registers.
constexpr int64_t kCyclesOfProduct = 3, kLinks = 20'000, kSamples = 400;

double sample() {
  uint64_t value = 3;
  const uint64_t factor = 5;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < kLinks; i += 8)
    for (int k = 0; k < 8; ++k) asm volatile("imul %1, %0" : "+r"(value) : "r"(factor));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return static_cast<double>(kCyclesOfProduct * kLinks) / taken.count();
}

}  // namespace

double clock_rate() {
  double best = 0;
  for (int64_t i = 0; i < kSamples; ++i) best = std::max(best, sample());
  return best;
}

}  // namespace einc
