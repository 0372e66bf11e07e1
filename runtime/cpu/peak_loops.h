// SPDX-License-Identifier: Apache-2.0
// Loops that keep one kind of unit of the processor busy, chosen for what it has: what a measured peak and its bandwidths stand on.
#pragma once
#include <cstdint>
#include <optional>

namespace einc {

struct PeakLoop {
  float (*run)(int64_t rounds);
  double flops_of_round;
  double flops_of_cycle;  // that the units of a core can do, as its makers state it: two instructions a cycle
};

PeakLoop multiply_add_loop();         // f32
std::optional<PeakLoop> bf16_loop();  // nullopt: bf16 is not faster than f32 here

// `count` is a multiple of 8, and the arrays lie at multiples of 64 bytes. Past the caches where there are stores for it.
void copy_past_caches(const float* from, float* to, int64_t count);
void triad_past_caches(const float* b, const float* c, float* a, int64_t count);
void copy_within_caches(const float* from, float* to, int64_t count);

// Seconds of `links` instructions that each wait for the one before, and how many cycles each takes. A multiple of 8.
double chain_seconds(int64_t links);
extern const int64_t kCyclesOfLink;

}  // namespace einc
