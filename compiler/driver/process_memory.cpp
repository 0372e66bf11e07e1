// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/process_memory.h"

#include <fstream>
#include <string>

#include "compiler/driver/allocator.h"

namespace einc {
namespace {

// A line "VmHWM:   123 kB" of /proc/self/status, in bytes.
int64_t status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == field && status >> kib) return kib * 1024;
  }
  return 0;
}

}  // namespace

int64_t resident_bytes() { return status_bytes("VmRSS:"); }
int64_t file_bytes() { return status_bytes("RssFile:"); }
int64_t high_water_bytes() { return status_bytes("VmHWM:"); }

void forget_high_water() {
  give_back_free_memory();
  std::ofstream("/proc/self/clear_refs") << '5';
}

}  // namespace einc
