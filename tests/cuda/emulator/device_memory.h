// SPDX-License-Identifier: Apache-2.0
// Memory of the emulated GPU: filled with NaNs when it is taken, between canaries that every launch is held to.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace emulator {

class DeviceMemoryTable {
 public:
  // 0 when the GPU is full.
  uint64_t allocate(size_t bytes);
  bool free(uint64_t address);
  // Whether the range lies in one allocation.
  bool holds(uint64_t address, size_t bytes) const;
  // What wrote outside its memory, else empty.
  std::string overwritten() const;
  size_t used() const { return used_; }
  size_t total() const { return total_; }
  void set_total(size_t bytes) { total_ = bytes; }

 private:
  size_t used_ = 0, total_ = size_t{4} << 30;
};

}  // namespace emulator
