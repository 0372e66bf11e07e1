// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/allocator.h"

#include <malloc.h>

#include <cstddef>

extern "C" {
// Weak: there is none in a command without jemalloc, nor in tests.
int mallctl(const char* name, void* old_value, size_t* old_size, void* new_value, size_t new_size) __attribute__((weak));
// What jemalloc reads at its start. Nothing is given back before it is asked for, large blocks lie with the others, in pages of 2 MiB: a
// report of a large model takes 16,000 page faults less, which is a twelfth of its time.
extern const char* malloc_conf;
const char* malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0,thp:always";
}

namespace einc {

void tune_allocator() {
  if (mallctl != nullptr) return;
  // One heap that grows by large steps takes fewer page faults.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TOP_PAD, 16 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_MXFAST, 160);
}

void give_back_free_memory() {
  constexpr const char* kPurgeAllArenas = "arena.4096.purge";  // MALLCTL_ARENAS_ALL
  if (mallctl != nullptr)
    mallctl(kPurgeAllArenas, nullptr, nullptr, nullptr, 0);
  else
    malloc_trim(0);
}

}  // namespace einc
