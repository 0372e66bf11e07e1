// SPDX-License-Identifier: Apache-2.0
// What a thread that spins says to the processor: leave the core to its neighbour for some cycles.
#pragma once

namespace einc {

inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace einc
