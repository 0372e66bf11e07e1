// SPDX-License-Identifier: Apache-2.0
// What of an NVIDIA GPU decides how kernels are divided among its threads: the planner, the report's rows and the driver speak of GPUs in
// it. Rates (peaks, bandwidths) are no part of it: they must not change the order of any sum.
#pragma once
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace einc {

// When not given: an H100 SXM.
struct GpuShape {
  int major = 9, minor = 0;                    // compute capability
  int processors = 132;                        // streaming multiprocessors
  int processor_threads = 2048;                // that reside on one of them at most
  int64_t processor_shared_bytes = 228 << 10;  // shared memory of one of them, 1 KiB of it reserved for each block
  int64_t block_shared_bytes = 227 << 10;      // that a block may take

  // One of so many of the threads that it holds at once, rounded down to a power of two, as the sizes of most axes are.
  int64_t threads(int one_of) const {
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(processors * processor_threads / one_of)));
  }
  bool has_wgmma() const { return major == 9 && minor == 0; }  // products of four warps together
  std::string arch() const { return "sm_" + std::to_string(major) + std::to_string(minor); }
  // What each of `blocks` on one processor may take, where the reserved part of each is taken off.
  int64_t shared_bytes_of(int64_t blocks) const;
  bool operator==(const GpuShape&) const = default;
};

inline constexpr int kOldestGpu = 8;  // compute capability that generated code needs: bf16 and asynchronous copies

// A GPU of that compute capability with so many processors; nothing where it is older than kOldestGpu or not known.
std::optional<GpuShape> gpu_shape(int major, int minor, int processors);
// The largest GPU sold with that architecture: "sm_90", "sm_90a".
std::optional<GpuShape> gpu_shape_of_arch(std::string_view arch);
std::string known_archs();  // "sm_80, sm_86, ..."

}  // namespace einc
