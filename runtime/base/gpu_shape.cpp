// SPDX-License-Identifier: Apache-2.0
// Sizes by compute capability: the table "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide.
#include "runtime/base/gpu_shape.h"

#include <algorithm>
#include <iterator>

namespace einc {
namespace {

constexpr int64_t kReserved = 1 << 10;  // of shared memory, for each block

struct Capability {
  int major, minor;
  int processor_threads;
  int processor_shared_kib, block_shared_kib;
  int most_processors;  // of the largest GPU sold with it, by NVIDIA's sheets
};
constexpr Capability kCapabilities[] = {
    {8, 0, 2048, 164, 163, 108},   // A100
    {8, 6, 1536, 100, 99, 84},     // A40, RTX 3090 Ti
    {8, 7, 1536, 164, 163, 16},    // Jetson AGX Orin
    {8, 9, 1536, 100, 99, 142},    // L40S
    {9, 0, 2048, 228, 227, 132},   // H100 SXM
    {10, 0, 2048, 228, 227, 148},  // B200
    {10, 3, 2048, 228, 227, 160},  // B300
    {12, 0, 1536, 100, 99, 188},   // RTX PRO 6000
    {12, 1, 1536, 100, 99, 48},    // GB10
};

}  // namespace

int64_t GpuShape::shared_bytes_of(int64_t blocks) const {
  return std::min(block_shared_bytes, processor_shared_bytes / blocks - kReserved);
}

std::optional<GpuShape> gpu_shape(int major, int minor, int processors) {
  for (const Capability& c : kCapabilities)
    if (c.major == major && c.minor == minor)
      return GpuShape{
          major, minor, processors, c.processor_threads, int64_t{c.processor_shared_kib} << 10, int64_t{c.block_shared_kib} << 10};
  return std::nullopt;
}

std::optional<GpuShape> gpu_shape_of_arch(std::string_view arch) {
  if (!arch.empty() && arch.back() == 'a') arch.remove_suffix(1);  // of one family alone: sm_90a
  for (const Capability& c : kCapabilities)
    if (const auto shape = gpu_shape(c.major, c.minor, c.most_processors); shape->arch() == arch) return shape;
  return std::nullopt;
}

std::string known_archs() {
  std::string text;
  for (const Capability& c : kCapabilities) text += (text.empty() ? "sm_" : ", sm_") + std::to_string(c.major) + std::to_string(c.minor);
  return text;
}

}  // namespace einc
