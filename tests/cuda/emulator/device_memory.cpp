// SPDX-License-Identifier: Apache-2.0
#include "device_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

namespace emulator {
namespace {

constexpr size_t kCanary = 256;  // bytes, on both sides: as far as the driver aligns
constexpr unsigned char kCanaryByte = 0xA5;

struct Block {
  unsigned char* memory;  // the first canary
  size_t bytes;
};
std::map<uint64_t, Block> blocks;  // by address

bool intact(const unsigned char* canary) {
  return std::all_of(canary, canary + kCanary, [](unsigned char byte) { return byte == kCanaryByte; });
}

}  // namespace

uint64_t DeviceMemoryTable::allocate(size_t bytes) {
  const size_t whole = (bytes + kCanary - 1) / kCanary * kCanary;
  if (whole > total_ || used_ > total_ - whole) return 0;
  auto* memory = static_cast<unsigned char*>(std::aligned_alloc(kCanary, whole + 2 * kCanary));
  if (!memory) return 0;
  std::memset(memory, kCanaryByte, whole + 2 * kCanary);
  std::memset(memory + kCanary, 0xFF, bytes);
  const auto address = reinterpret_cast<uint64_t>(memory + kCanary);
  blocks[address] = {memory, bytes};
  used_ += whole;
  return address;
}

bool DeviceMemoryTable::free(uint64_t address) {
  const auto found = blocks.find(address);
  if (found == blocks.end()) return false;
  used_ -= (found->second.bytes + kCanary - 1) / kCanary * kCanary;
  std::free(found->second.memory);
  blocks.erase(found);
  return true;
}

bool DeviceMemoryTable::holds(uint64_t address, size_t bytes) const {
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return false;
  const auto& [begin, block] = *--after;
  return address - begin <= block.bytes && bytes <= block.bytes - (address - begin);
}

std::string DeviceMemoryTable::overwritten() const {
  for (const auto& [address, block] : blocks) {
    if (!intact(block.memory)) return "memory in front of an allocation of " + std::to_string(block.bytes) + " bytes was overwritten";
    if (!intact(block.memory + kCanary + block.bytes))
      return "memory behind an allocation of " + std::to_string(block.bytes) + " bytes was overwritten";
  }
  return {};
}

}  // namespace emulator
