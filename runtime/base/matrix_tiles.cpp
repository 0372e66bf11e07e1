// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/matrix_tiles.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace einc {

bool enable_matrix_tiles() {
#if defined(__x86_64__) && defined(__linux__)
  static const bool enabled = [] {
    constexpr unsigned kBf16Tiles = 1U << 22, kTiles = 1U << 24;  // of edx, leaf 7
    constexpr long kRequestPermission = 0x1023, kTileData = 18;   // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kBf16Tiles) == 0 || (d & kTiles) == 0) return false;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return enabled;
#else
  return false;
#endif
}

}  // namespace einc
