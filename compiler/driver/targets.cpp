// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/targets.h"

#include "compiler/cost/device.h"
#include "compiler/report/report.h"
#include "runtime/base/file_cache.h"
#include "runtime/cuda/device.h"

namespace einc {
namespace {

// What the driver calls a machine of the table; the first row whose words the name holds.
constexpr struct {
  const char *words, *device;
} kGpus[] = {{"H100 PCIe", "h100-pcie"}, {"H100", "h100-sxm"}, {"H200", "h200"}, {"B200", "b200"},       {"A100-SXM4-40GB", "a100-40gb"},
             {"A100", "a100-80gb"},      {"V100", "v100"},     {"L40S", "l40s"}, {"RTX 4090", "rtx4090"}};

}  // namespace

std::shared_ptr<const ProgramRep> program_for(const std::string& target, const std::shared_ptr<const ProgramGraphs>& graphs,
                                              const std::optional<MemoryLimit>& memory_limit, const EincTransport* transport) {
  if (target == "reference") return reference_program(*graphs);
  Scheduling scheduling;
  scheduling.memory_limit = memory_limit;
  const std::filesystem::path cache = FileCache::default_folder();
  return target == "cuda" ? cuda_program(*graphs, cache, scheduling, transport) : native_program(*graphs, cache, scheduling, transport);
}

double gpu_peak_flops(Policy policy) {
  for (const auto& [words, name] : kGpus)
    if (gpu_name().find(words) != std::string::npos) return contraction_peak(*find_device(name), policy).value_or(0);
  return 0;
}

int64_t gpu_bytes_taken() { return cuda::Gpu::get().memory_bytes() - cuda::Gpu::get().free_bytes(); }

std::string gpu_name() { return cuda::Gpu::get().name(); }

}  // namespace einc
