#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "compiler/cost/totals.h"
#include "compiler/driver/bench.h"
#include "compiler/driver/process_memory.h"
#include "compiler/pipeline/cpu_program.h"
#include "runtime/base/float_format.h"
#include "runtime/base/random.h"

namespace einc {
namespace {

constexpr int kTracedSteps = 3;  // a kernel's time is its best of these

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void make_inputs(Executor& executor, const Executable& program) {
  int64_t bound = 2;
  for (const Launch& launch : program.launches)
    for (const SiteInfo& site : launch.sites) bound = bound == 2 ? site.bound : std::min(bound, site.bound);
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const ExecutableBuffer& buffer = program.buffers[b];
    if (buffer.role != BufferRole::input) continue;
    const PhiloxKey key = random_key(0, buffer.name);
    std::byte* at = executor.bytes(b).data();
    const int64_t count = buffer.bytes / bytes_of(buffer.dtype);
    for (int64_t i = 0; i < count; ++i) {
      const double u = random_uniform(key, 0, static_cast<uint64_t>(i));
      store_number(buffer.dtype, is_floating(buffer.dtype) ? u : std::floor(u * static_cast<double>(bound)),
                   at + i * bytes_of(buffer.dtype));
    }
  }
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

void add(KernelWork& sum, const KernelWork& work) {
  sum.contraction += work.contraction;
  sum.elementwise += work.elementwise;
  sum.reduction += work.reduction;
  sum.bytes_read += work.bytes_read;
  sum.bytes_written += work.bytes_written;
}

// Of each launch, from the first thread's start to the last one's end.
std::vector<double> seconds_of(const std::vector<LaunchSpan>& spans, size_t launches) {
  std::vector<double> begin(launches, std::numeric_limits<double>::infinity()), end(launches, 0);
  for (const LaunchSpan& span : spans) {
    begin[span.launch] = std::min(begin[span.launch], span.begin);
    end[span.launch] = std::max(end[span.launch], span.end);
  }
  for (size_t l = 0; l < launches; ++l) end[l] = std::max(0.0, end[l] - begin[l]);
  return end;
}

std::vector<KernelTime> kernels_of(const CpuProgram& cpu, const std::vector<double>& seconds) {
  const Executable& program = cpu.program();
  std::vector<KernelTime> rows(program.functions.size());
  for (size_t l = 0; l < program.launches.size(); ++l) {
    const Launch& launch = program.launches[l];
    KernelTime& row = rows[launch.function];
    if (row.launches++ == 0) row.symbol = program.functions[launch.function], row.label = launch.label;
    row.seconds += seconds[l];
    add(row.work, work_of(*cpu.lowered().list.kernels[l].kernel));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const KernelTime& a, const KernelTime& b) { return a.seconds > b.seconds; });
  return rows;
}

double algorithmic_flops(const Graph& graph, const Bindings& dims) {
  return count_flops(graph, constant_nodes(graph)).step().evaluate(graph.dims.bind(dims).values)->to_double();
}

}  // namespace

double BenchResult::share_of_bound(const KernelTime& kernel) const {
  const auto flops = static_cast<double>(kernel.work.flops());
  const auto bytes = static_cast<double>(kernel.work.bytes_read + kernel.work.bytes_written);
  return std::max(flops / peak_flops(), bytes / peak.bandwidth()) / kernel.seconds;
}

BenchResult measure(const Graph& graph, const Bindings& dims, const BenchOptions& options) {
  BenchResult result;
  result.options = options;
  result.policy = graph.policy == Policy::inherit ? Policy::f32 : graph.policy;
  result.algorithmic = algorithmic_flops(graph, dims);
  CpuOptions cpu_options;
  cpu_options.mode = options.mode;
  cpu_options.fusion = options.fusion;
  if (!options.cached) cpu_options.cache.clear();
  const double before = now();
  const CpuProgram cpu(graph, dims, cpu_options);
  result.compile_seconds = now() - before;
  const auto pool = std::make_shared<ThreadPool>(options.threads);
  result.peak = measure_peak(*pool);

  forget_high_water();
  result.memory.before = resident_bytes();
  Executor executor(cpu.program(), cpu.functions(), pool, Sources::own);
  executor.initialize(0);
  make_inputs(executor, cpu.program());
  executor.run(0, 0);
  for (int i = 0; i < options.steps; ++i) {
    const double start = now();
    executor.run(0, static_cast<uint64_t>(i) + 1);
    result.steps.push_back(now() - start);
  }
  result.step = median(result.steps);
  result.memory.planned = cpu.program().memory_bytes + options.threads * cpu.program().scratch_bytes;
  result.memory.high_water = high_water_bytes();

  std::vector<double> best(cpu.program().launches.size(), std::numeric_limits<double>::infinity());
  for (int i = 0; i < kTracedSteps; ++i) {
    result.spans = executor.run_traced(0, static_cast<uint64_t>(options.steps + i) + 1);
    const std::vector<double> seconds = seconds_of(result.spans, best.size());
    for (size_t l = 0; l < best.size(); ++l) best[l] = std::min(best[l], seconds[l]);
  }
  result.kernels = kernels_of(cpu, best);
  for (const KernelTime& kernel : result.kernels) add(result.executed, kernel.work);
  for (const Launch& launch : cpu.program().launches) result.labels.push_back(launch.label);
  return result;
}

}  // namespace einc
