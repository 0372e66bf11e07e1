// SPDX-License-Identifier: Apache-2.0
// The device table: a row for each machine, dense peaks in TFLOP/s, memory in GB as sold (10^9), bandwidth in GB/s.
#include <algorithm>
#include <array>

#include "compiler/cost/device.h"

namespace einc {
namespace {

struct DeviceRow {
  const char *name, *description;
  DeviceTarget target;
  double f64, f32, tf32, bf16, f16, fp8, int8, memory_gb, bandwidth_gb;
  const char* source;
  // The last cache as sold, its bandwidth where it was measured, and what a launch adds: on GPUs an assumption.
  double cache_mb = 0, cache_gb = 0, launch_us = 0;
  int sm = 0, processors = 0;  // of NVIDIA's that einc compiles for: ten times the compute capability, streaming multiprocessors
};

// Links between devices, in GB/s each way. Sheets print NVLink's both ways together: 900 for an H100 (NVIDIA H100 datasheet), 600 for an
// A100, 1800 for a B200, 7 x 128 for an MI300X. Between machines: a port for each GPU, 400 Gb/s in a DGX H100 and B200, 200 Gb/s in a DGX
// A100 (their user guides). PCI Express x16: 32 GB/s in generation 4, 64 in generation 5. Steps of a ring: NCCL's own figures,
// src/graph/tuning.cc, ring of the simple protocol: NVLink 3.4 us, PCI 5.7 us, network 9.6 us.
struct LinkRow {
  const char *device, *name;
  int64_t devices;
  double gb, latency_us;
};
constexpr LinkRow kLinks[] = {
    {"h100-sxm", "NVLink", 8, 450, 3.4},
    {"h100-sxm", "network", kAnyNumberOfDevices, 50, 9.6},
    {"h100-pcie", "PCI Express", 8, 64, 5.7},
    {"h100-pcie", "network", kAnyNumberOfDevices, 50, 9.6},
    {"h200", "NVLink", 8, 450, 3.4},
    {"h200", "network", kAnyNumberOfDevices, 50, 9.6},
    {"b200", "NVLink", 8, 900, 3.4},
    {"b200", "network", kAnyNumberOfDevices, 50, 9.6},
    {"a100-80gb", "NVLink", 8, 300, 3.4},
    {"a100-80gb", "network", kAnyNumberOfDevices, 25, 9.6},
    {"a100-40gb", "NVLink", 8, 300, 3.4},
    {"a100-40gb", "network", kAnyNumberOfDevices, 25, 9.6},
    {"l40s", "PCI Express", 8, 32, 5.7},
    {"rtx4090", "PCI Express", 8, 32, 5.7},
    {"mi300x", "Infinity Fabric", 8, 448, 3.4},
};

// What is reached of those rates. Clocks are those of the stated peaks (B200: what they give for its 8192 FLOP a clock).
// What of the clock is kept: einc's prediction without it, beside steps that others measured over a run (`scripts/bench published`), of
// those rows alone whose id hashes even: on A100s 0.66 to 0.86, 0.77 in the median. On H100s in bf16 0.75 where products decide (70B) and
// 0.61 (which does not state its micro-batch), less where attention of 65536 keys does, by kernels that others wrote for A100s, and 0.53 in
// fp8: not followed. The other rows test it. H200 and B200 are taken to be like H100s, the rest like A100s. One H200 kept 97 % of its speed
// over 600 steps of GPT-2 (runtime/gpus.md), and its products take what the shares below give.
//
// Products: the best of many shapes in bf16 (github.com/stas00/ml-engineering, compute/accelerator, 2025): 271.2 TFLOP/s on an A100 SXM,
// 794.5 on an H100 and H200, 1745 on a B200; in fp8 1402.6 (H100), 1453.4 (H200) and 3432.5. Copies: 4.3 of 4.8 TB/s on an H200, taken for
// all. Warps of a Hopper that multiply by themselves (mma.sync) reach 62.9 % of its peak (Luo et al., Benchmarking and Dissecting the
// Nvidia Hopper GPU Architecture, arXiv 2402.13499); a B200's are taken to be no better. L40S and RTX 4090: assumed.
struct SustainedRow {
  const char* device;
  double ghz, clock, products, fp8, bandwidth, warps;
};
constexpr SustainedRow kSustained[] = {
    {"h100-sxm", 1.830, 0.70, 0.803, 0.709, 0.9, 0.629}, {"h100-pcie", 1.620, 0.70, 0.803, 0.709, 0.9, 0.629},
    {"h200", 1.830, 0.70, 0.803, 0.734, 0.9, 0.629},     {"b200", 1.856, 0.70, 0.776, 0.763, 0.9, 0.629},
    {"a100-80gb", 1.410, 0.75, 0.869, 1, 0.9, 1},        {"a100-40gb", 1.410, 0.75, 0.869, 1, 0.9, 1},
    {"l40s", 2.520, 0.75, 0.85, 0.85, 0.9, 1},           {"rtx4090", 2.520, 0.75, 0.85, 0.85, 0.9, 1},
};

// An f64 of 0 where the sheet gives none worth using.
constexpr DeviceRow kRows[] = {
    {"h100-sxm", "NVIDIA H100 SXM5 80 GB", DeviceTarget::cuda, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 80, 3350,
     "528 tensor cores x 512 FMA x 2 x 1.830 GHz; the sheet prints 1979 with sparsity", 50, 0, 1.2, 90, 132},
    {"h100-pcie", "NVIDIA H100 PCIe 80 GB", DeviceTarget::cuda, 51, 51, 378, 756, 756, 1513, 1513, 80, 2000,
     "456 tensor cores x 512 FMA x 2 x 1.620 GHz", 50, 0, 1.2, 90, 114},
    {"h200", "NVIDIA H200 SXM 141 GB", DeviceTarget::cuda, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 141, 4800,
     "H100 SXM's die with more memory", 60, 0, 1.2, 90, 132},
    {"b200", "NVIDIA B200 SXM 180 GB", DeviceTarget::cuda, 40, 80, 1125, 2250, 2250, 4500, 4500, 180, 8000,
     "DGX B200 sheet; 192 GB physical, of which 180 are sold; a GB200 does 2500 in bf16, 5000 in fp8 and has 186 GB", 126, 0, 1.2, 100,
     148},
    {"a100-80gb", "NVIDIA A100 SXM 80 GB", DeviceTarget::cuda, 19.5, 19.5, 156, 312, 312, 0, 624, 80, 2039,
     "432 tensor cores x 256 FMA x 2 x 1.410 GHz; the sheet prints 624 with sparsity; PCIe: 1935 GB/s", 40, 0, 1.2, 80, 108},
    {"a100-40gb", "NVIDIA A100 SXM 40 GB", DeviceTarget::cuda, 19.5, 19.5, 156, 312, 312, 0, 624, 40, 1555,
     "5120 bit x 2.43 Gb/s; PCIe: the same", 40, 0, 1.2, 80, 108},
    {"v100", "NVIDIA V100 SXM2 32 GB", DeviceTarget::none, 7.8, 15.7, 0, 0, 125, 0, 0, 32, 900,
     "640 tensor cores x 64 FMA x 2 x 1.530 GHz; f16 only; also sold with 16 GB", 6},
    {"l40s", "NVIDIA L40S 48 GB", DeviceTarget::cuda, 0, 91.6, 183, 362.05, 362.05, 733, 733, 48, 864,
     "384 bit x 18 Gb/s; 366.4 by cores x clock; the sheet prints 733 with sparsity", 96, 0, 1.2, 89, 142},
    {"rtx4090", "NVIDIA GeForce RTX 4090 24 GB", DeviceTarget::cuda, 0, 82.6, 82.6, 165.2, 165.2, 330.3, 660.6, 24, 1008,
     "f32 accumulation, f16 accumulation doubles f16 and fp8; 512 tensor cores x 64 FMA x 2 x 2.520 GHz", 72, 0, 1.2, 89, 128},
    {"mi300x", "AMD Instinct MI300X 192 GB", DeviceTarget::none, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9, 192, 5300,
     "1216 matrix cores x 256 FMA x 2 x 2.100 GHz; 8192 bit x 5.2 Gb/s"},
    {"tpu-v4", "Google TPU v4", DeviceTarget::none, 0, 0, 0, 275, 0, 0, 275, 32, 1228,
     "Google Cloud documentation; some tables print 1200 GB/s"},
    {"tpu-v5e", "Google TPU v5e", DeviceTarget::none, 0, 0, 0, 197, 0, 0, 393, 16, 819,
     "Google Cloud documentation; newer pages print 800 GiB/s"},
    {"tpu-v5p", "Google TPU v5p", DeviceTarget::none, 0, 0, 0, 459, 0, 0, 918, 95, 2765, "Google Cloud documentation"},
    {"cpu", "2 cores of an AMD EPYC Zen 5 (AVX-512, bf16)", DeviceTarget::cpu, 0.275, 0.55, 0, 1.1, 0, 0, 0, 23, 63,
     "measured FMA and stream rates; a file of one's own describes another machine", 32, 230, 1},
};

// A process on a GPU holds a context, the driver's buffers and its modules: 0.45 to 0.6 GB by what nvidia-smi shows of idle processes on
// H100s and A100s, more with cuBLASLt's kernels loaded. A processor's memory also holds the system.
constexpr double kGpuReserve = 0.7e9, kSystemReserve = 1e9;

Device make(const DeviceRow& row) {
  constexpr double tera = 1e12, giga = 1e9;
  const std::optional<GpuShape> shape = gpu_shape(row.sm / 10, row.sm % 10, row.processors);
  Device device{row.name,        row.description, row.f64 * tera, row.f32 * tera, row.tf32 * tera,
                row.bf16 * tera, row.f16 * tera,  row.fp8 * tera, row.int8 * tera};
  device.target = row.target;
  device.memory_bytes = row.memory_gb * giga;
  device.bandwidth = row.bandwidth_gb * giga;
  device.cache_bytes = row.cache_mb * 1e6;
  device.cache_bandwidth = row.cache_gb * giga;
  device.launch_s = row.launch_us * 1e-6;
  device.gpu = shape;
  device.source = row.source;
  for (const LinkRow& link : kLinks)
    if (link.device == device.name) device.links.push_back({link.name, link.devices, link.gb * giga, link.latency_us * 1e-6});
  for (const SustainedRow& rates : kSustained)
    if (rates.device == device.name) {
      device.clock = rates.ghz * giga, device.sustained_clock = rates.clock;
      device.sustained_products = rates.products, device.sustained_fp8 = rates.fp8, device.sustained_bandwidth = rates.bandwidth;
      device.warp_products = rates.warps;
    }
  set_usual_reserve(device);
  return device;
}

}  // namespace

void set_usual_reserve(Device& device) {
  if (device.reserve_bytes > 0) return;
  const bool system = device.target == DeviceTarget::cpu;
  device.reserve_bytes = std::min(system ? kSystemReserve : kGpuReserve, device.memory_bytes / 8);
  device.reserve_source = system ? "the system, and 0.3 GB of einc itself while it compiles (high-water mark of a small bench): assumed"
                                 : "a process' context and modules, by nvidia-smi on idle processes: assumed, not measured by einc";
}

std::span<const Device> known_devices() {
  static const std::vector<Device> table = [] {
    std::vector<Device> devices;
    for (const DeviceRow& row : kRows) devices.push_back(make(row));
    return devices;
  }();
  return table;
}

}  // namespace einc
