// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/machine_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/base/file_cache.h"
#include "runtime/cpu/cache_sizes.h"
#include "runtime/cpu/cpu_features.h"

namespace einc {
namespace {

// As a device file says it, so that one reader does for both. A processor without an instruction for bf16, or a system that tells nothing
// of its caches, leaves those fields out.
std::string device_file(const CpuPeak& peak, int threads) {
  const std::pair<const char*, double> fields[] = {
      {"f32", peak.flops},
      {"f64", peak.flops / 2},  // half the lanes
      {"bf16", peak.bf16_flops},
      {"stated_f32", peak.stated_flops},
      {"stated_bf16", peak.stated_bf16_flops},
      {"memory_bytes", static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE))},
      {"bandwidth", peak.bandwidth()},
      {"cache_bytes", static_cast<double>(last_cache_bytes())},
      {"cache_bandwidth", peak.cache},
      {"launch_s", peak.launch}};
  nlohmann::json json{{"name", "here"}, {"description", fmt::format("this machine, {} thread{}", threads, threads == 1 ? "" : "s")}};
  for (const auto& [name, value] : fields)
    if (value > 0) json[name] = value;
  return json.dump();
}

}  // namespace

Device device_of(const CpuPeak& peak, int threads) { return read_device_file(device_file(peak, threads), "measured here").devices.front(); }

Device measured_here() {
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  FileCache cache(FileCache::default_folder());
  // A folder may be shared by machines: what tells them apart is what their processors can do.
  std::string key = fmt::format("einc --device=here, form 3: {} threads, {} bytes of cache", threads, last_cache_bytes());
  for (const std::string_view feature : cpu_feature_names())
    if (has_cpu_feature(feature)) key += fmt::format(" {}", feature);
  if (const auto kept = cache.load(key))
    if (const DeviceFile file = read_device_file(*kept, "measured here"); file.problems.empty()) return file.devices.front();
  ThreadPool pool(threads);
  const CpuPeak peak = measure_peak(pool);
  cache.store(key, device_file(peak, threads));
  return device_of(peak, threads);
}

}  // namespace einc
