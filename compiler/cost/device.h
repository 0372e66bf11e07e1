// SPDX-License-Identifier: Apache-2.0
// Machines a cost can be stated for: dense peaks per number format, memory and bandwidth, from the vendors' sheets (never
// the doubled figures for sparse matrices). A device file is a JSON object with the same fields; it may define several. Its "target" is
// "cpu" when not given.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/gpu_shape.h"

namespace einc {

// What einc compiles for on such a machine; none: it makes no code for it.
enum class DeviceTarget : uint8_t { cpu, cuda, none };

inline constexpr int64_t kAnyNumberOfDevices = int64_t{1} << 40;
// What connects devices: each sends and receives `bandwidth` bytes per second to and from others of the same group of `devices`.
struct DeviceLink {
  std::string name;  // "NVLink"
  int64_t devices = 0;
  double bandwidth = 0;
  double latency_s = 0;  // of a step in a ring
};

struct Device {
  std::string name;         // "h100-sxm"
  std::string description;  // "NVIDIA H100 SXM5 80 GB"
  // Dense FLOP/s of matrix products by operand format; 0: the device has no such path.
  double f64 = 0, f32 = 0, tf32 = 0, bf16 = 0, f16 = 0, fp8 = 0, int8 = 0;
  // Where those are measured: f32's and bf16's by clock and units, which no step exceeds. 0: they are such figures themselves.
  double stated_f32 = 0, stated_bf16 = 0;
  DeviceTarget target = DeviceTarget::cpu;
  double memory_bytes = 0;
  double reserve_bytes = 0;                     // of them, what is no tensor's: the system's or driver's, and the program's own
  std::string reserve_source{};                 // where that figure comes from
  double bandwidth = 0;                         // bytes per second
  double cache_bytes = 0, cache_bandwidth = 0;  // of the last cache; 0: unknown, and taken to hold nothing, or to be no limit
  double launch_s = 0;                          // from one kernel's end to the next one's first work
  double small_launch_s = 0;                    // of a processor, that one thread takes for a launch at once; 0: not measured
  // Of a GPU: its processors' clock at the stated peaks, in Hz, and the share of it that is kept while they compute for hours; the share of
  // the stated rates that a library's best products reach, of 16 bits and more and of 8 (`sustained_fp8`), that long copies reach, and that
  // warps reach which multiply by themselves. 1: all of it, as where rates are measured ones.
  double clock = 0, sustained_clock = 1, sustained_products = 1, sustained_fp8 = 1, sustained_bandwidth = 1, warp_products = 1;
  double threads = 0;               // of a processor, that the rates are of; 0: all of its cores
  std::optional<GpuShape> gpu{};    // that kernels are planned for; target cuda: none is an H100's
  std::vector<DeviceLink> links{};  // nearest first; none: not told
  std::string source{};             // where the numbers come from and what else sheets print, for --list-devices

  double usable_bytes() const { return memory_bytes > reserve_bytes ? memory_bytes - reserve_bytes : 0; }
  // Peak of a contraction with operands of this dtype, and of elementwise work and reductions (always in f32, or f64).
  std::optional<double> contraction_peak(DType dtype) const;
  std::optional<double> tf32_peak() const;  // of f32 multiplied in tf32; of f32 where there is none
  std::optional<double> vector_peak(DType dtype) const;
  bool has_sustained_rates() const { return sustained_clock < 1 || sustained_products < 1 || sustained_bandwidth < 1; }
  double sustained_share(DType dtype) const { return bytes_of(dtype) == 1 ? sustained_fp8 : sustained_products; }
};

// What a row without a figure of its own leaves free, and why so much.
void set_usual_reserve(Device& device);

std::span<const Device> known_devices();
const Device* find_device(std::string_view name);
// Near names of an unknown one, for the hint.
std::vector<std::string> near_devices(std::string_view name);

struct DeviceFile {
  std::vector<Device> devices;
  std::vector<std::string> problems;  // what is wrong with the file; none: devices is not empty
  std::vector<std::string> warnings;  // doubled sparse peaks
};
DeviceFile read_device_file(std::string_view json_text, std::string_view file_name);

// A warning when `peak` looks like a known device's doubled sparse figure.
std::optional<std::string> sparse_peak_warning(const Device& device);

// The same for a peak that is given by itself, for contractions of this dtype on `device`, or on a device of the table.
std::optional<std::string> sparse_peak_warning(double peak, DType dtype, const Device* device);

// The table of --list-devices.
std::string list_devices_text();

}  // namespace einc
