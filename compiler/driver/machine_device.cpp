#include "compiler/driver/machine_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/base/file_cache.h"
#include "runtime/cpu/cpu_features.h"

namespace einc {
namespace {

constexpr const char* kFields[] = {"f32", "bf16", "bandwidth", "cache_bandwidth", "launch_s"};

double& field_of(Device& device, size_t field) {
  double* const members[] = {&device.f32, &device.bf16, &device.bandwidth, &device.cache_bandwidth, &device.launch_s};
  return *members[field];
}

// What does not change from one run to the next.
void describe(Device& device, int threads) {
  device.name = "here";
  device.description = fmt::format("this machine, {} thread{}", threads, threads == 1 ? "" : "s");
  device.source = "measured here";
  device.f64 = device.f32 / 2;
  device.memory_bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  device.cache_bytes = static_cast<double>(last_cache_bytes());
}

}  // namespace

Device device_of(const CpuPeak& peak) {
  Device device;
  device.f32 = peak.flops;
  device.bf16 = peak.bf16_flops;
  device.bandwidth = peak.bandwidth();
  device.cache_bandwidth = peak.cache;
  device.launch_s = peak.launch;
  describe(device, 1);
  return device;
}

Device measured_here() {
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  FileCache cache(FileCache::default_folder());
  // A folder may be shared by machines: what tells them apart is what their processors can do.
  std::string key = fmt::format("einc --device=here, form 1: {} threads, {} bytes of cache", threads, last_cache_bytes());
  for (const std::string_view feature : cpu_feature_names())
    if (has_cpu_feature(feature)) key += fmt::format(" {}", feature);
  Device device;
  if (const auto kept = cache.load(key)) {
    const nlohmann::json json = nlohmann::json::parse(*kept, nullptr, false);
    bool whole = json.is_object();
    for (size_t i = 0; whole && i < std::size(kFields); ++i) {
      whole = json.contains(kFields[i]) && json[kFields[i]].is_number();
      if (whole) field_of(device, i) = json[kFields[i]].get<double>();
    }
    if (whole) return describe(device, threads), device;
  }
  ThreadPool pool(threads);
  device = device_of(measure_peak(pool));
  describe(device, threads);
  nlohmann::json json;
  for (size_t i = 0; i < std::size(kFields); ++i) json[kFields[i]] = field_of(device, i);
  cache.store(key, json.dump());
  return device;
}

}  // namespace einc
