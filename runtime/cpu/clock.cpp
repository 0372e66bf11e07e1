// SPDX-License-Identifier: Apache-2.0
// The processor's clock, from a chain of instructions that each wait for the one before. Other work on the machine can only make a
// sample longer, so the shortest of many small ones tells the clock even where half a second of multiply-adds would not be let alone.
#include <algorithm>
#include <cstdint>

#include "runtime/cpu/peak.h"
#include "runtime/cpu/peak_loops.h"

namespace einc {
namespace {

constexpr int64_t kLinks = 20'000, kSamples = 400;

}  // namespace

double clock_rate() {
  double best = 0;
  for (int64_t i = 0; i < kSamples; ++i) best = std::max(best, static_cast<double>(kCyclesOfLink * kLinks) / chain_seconds(kLinks));
  return best;
}

}  // namespace einc
