// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "compiler/cost/totals.h"
#include "compiler/driver/bench.h"
#include "compiler/driver/machine_device.h"
#include "compiler/driver/process_memory.h"
#include "compiler/ir/index_range.h"
#include "compiler/library/map_gemm.h"
#include "compiler/pipeline/cpu_program.h"
#include "compiler/pipeline/cuda_program.h"
#include "compiler/report/lower_bound.h"
#include "compiler/report/schedule.h"
#include "runtime/base/float_format.h"
#include "runtime/base/random.h"
#include "runtime/cuda/cuda_executor.h"
#include "runtime/cuda/gpu_peak.h"

namespace einc {
namespace {

constexpr uint64_t kTracedSteps = 3;  // at least; a kernel's time is its best of these

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

using DrawRanges = std::unordered_map<std::string, DrawRange>;  // by input

DrawRanges draw_ranges(const Graph& graph, const Bindings& dims) {
  const std::vector<IndexRange> ranges = index_ranges(graph, graph.dims.bind(dims).values);
  DrawRanges drawn;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (const Node& node = graph.nodes[i]; node.op == Op::input)
      drawn.emplace(node.as<InputAttr>().name.str(), draw_range(ranges[i], node.type.dtype));
  return drawn;
}

template <class Machine>
void make_inputs(Machine& machine, ThreadPool& pool, const DrawRanges& ranges) {
  const Executable& program = machine.program();
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const ExecutableBuffer& buffer = program.buffers[b];
    if (buffer.role != BufferRole::input) continue;
    const PhiloxKey key = random_key(0, buffer.name);
    const DrawRange range = ranges.at(std::string(buffer.name));
    HostArray values{buffer.dtype, buffer.shape, std::vector<std::byte>(static_cast<size_t>(buffer.bytes))};
    std::byte* at = values.bytes.data();
    pool.run(values.count(), [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double u = random_uniform(key, 0, static_cast<uint64_t>(i));
        store_number(buffer.dtype,
                     is_floating(buffer.dtype) ? u : static_cast<double>(range.low) + std::floor(u * static_cast<double>(range.count)),
                     at + i * bytes_of(buffer.dtype));
      }
    });
    machine.set(b, values);
  }
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
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

// Per launch: what it runs, equal ones by the same symbol, and its work.
struct LaunchWork {
  std::vector<std::string> symbols;  // empty: another one does it
  std::vector<KernelWork> work;
  std::vector<double> predicted;  // seconds
};

// By the report's model of launches.
std::vector<double> predicted_times(const FormedGraph& formed, const TimedMachine& machine) {
  std::vector<uint32_t> row_of;
  const std::vector<LaunchReport> schedule = schedule_report(formed, machine, row_of);
  std::vector<double> times;
  for (const uint32_t row : row_of) times.push_back(row == kNoRow ? 0 : schedule[row].time_s.value_or(0));
  return times;
}

std::vector<KernelTime> kernels_of(const Executable& program, const LaunchWork& launches, const std::vector<double>& seconds) {
  std::vector<KernelTime> rows;
  std::unordered_map<std::string, size_t> row_of;
  for (size_t l = 0; l < program.launches.size(); ++l) {
    if (program.launches[l].when == LaunchWhen::unbounded || launches.symbols[l].empty()) continue;  // not run
    const auto [found, fresh] = row_of.emplace(launches.symbols[l], rows.size());
    if (fresh) rows.push_back({launches.symbols[l], program.launches[l].label, 0, 0, 0, {}});
    KernelTime& row = rows[found->second];
    ++row.launches;
    row.seconds += seconds[l];
    row.predicted += launches.predicted[l];
    row.work += launches.work[l];
  }
  std::stable_sort(rows.begin(), rows.end(), [](const KernelTime& a, const KernelTime& b) { return a.seconds > b.seconds; });
  return rows;
}

// `machine`: an executor with its params and states initialised; `run(step)` comes back when the step is done. The result: the least time
// of each launch.
template <class Machine, class Run>
std::vector<double> time_steps(Machine& machine, ThreadPool& pool, Run run, const DrawRanges& ranges, BenchResult& result) {
  make_inputs(machine, pool, ranges);
  const int before = result.gpu.empty() ? 1 : 2;  // a GPU's second run captures what later ones replay
  for (int i = 0; i < before; ++i) run(0);
  const auto steps = static_cast<uint64_t>(result.options.steps);
  for (uint64_t i = 0; i < steps; ++i) {
    result.options.progress("step", static_cast<int64_t>(i), result.options.steps);
    const double start = now();
    run(i + 1);
    result.steps.push_back(now() - start);
  }
  result.step = median(result.steps);
  const Executable& program = machine.program();
  std::vector<double> best(program.launches.size(), std::numeric_limits<double>::infinity());
  const uint64_t traced = result.gpu.empty() ? kTracedSteps : std::max(kTracedSteps, steps);
  result.options.progress("timing each kernel", 0, 0);
  for (uint64_t i = 0; i < traced; ++i) {
    result.spans = machine.run_traced(0, steps + i + 1);
    const std::vector<double> seconds = seconds_of(result.spans, best.size());
    result.traced.push_back(std::accumulate(seconds.begin(), seconds.end(), 0.0));
    for (size_t l = 0; l < best.size(); ++l) best[l] = std::min(best[l], seconds[l]);
  }
  return best;
}

void sum_up(const Executable& program, const LaunchWork& launches, const std::vector<double>& seconds, BenchResult& result) {
  result.kernels = kernels_of(program, launches, seconds);
  for (const KernelTime& kernel : result.kernels)
    result.executed += kernel.work, result.predicted += kernel.predicted, result.launches += kernel.launches;
  for (const Launch& launch : program.launches) result.labels.push_back(launch.label);
}

double algorithmic_flops(const Graph& graph, const Bindings& dims) {
  return count_flops(graph, constant_nodes(graph)).step().evaluate(graph.dims.bind(dims).values)->to_double();
}

void measure_cpu(const Graph& graph, const Bindings& dims, BenchResult& result) {
  const BenchOptions& options = result.options;
  CpuOptions cpu_options;
  cpu_options.mode = options.mode;
  cpu_options.scheduling = options.scheduling;
  if (!options.cached) cpu_options.cache.clear();
  const double before = now();
  options.progress("compiling", 0, 0);
  const CpuProgram cpu(graph, dims, cpu_options);
  result.compile_seconds = now() - before;
  const auto pool = std::make_shared<ThreadPool>(options.threads);
  options.progress("measuring the machine", 0, 0);
  result.peak = measure_machine(*pool);
  options.progress("the first step", 0, 0);
  forget_high_water();
  result.memory.before = resident_bytes();
  Executor executor(cpu.program(), cpu.functions(), pool, Sources::own);
  executor.initialize(0);
  LaunchWork launches;
  for (const Launch& launch : cpu.program().launches)
    launches.symbols.push_back(launch.scan >= 0 ? fmt::format("scan{}", launch.scan) : cpu.program().functions[launch.function]);
  for (const GraphKernel& k : cpu.lowered().list.kernels) launches.work.push_back(work_of(*k.kernel));
  const std::vector<double> seconds = time_steps(
      executor, *pool, [&](uint64_t step) { executor.run(0, step); }, draw_ranges(graph, dims), result);
  result.memory.planned = cpu.program().memory_bytes + options.threads * cpu.program().scratch_bytes;
  result.memory.high_water = high_water_bytes();
  // Once more: what else runs here for half a second would pass for a slow machine, and a step for more than 100 % of it.
  result.peak = best_of(result.peak, measure_machine(*pool));
  const Device device = device_of(result.peak, options.threads);
  launches.predicted = predicted_times(cpu.lowered(), {&device, native_processor()});
  result.lower_bound = lower_bound_seconds(cpu.lowered(), device);
  sum_up(cpu.program(), launches, seconds, result);
}

std::string symbol_of(const LibraryProduct& gemm) {
  return fmt::format("{} of {} x {} x {} {}{} {}{}", gemm.batch, gemm.rows, gemm.depth, gemm.columns, to_string(gemm.left.dtype),
                     gemm.left.transposed ? "'" : "", to_string(gemm.right.dtype), gemm.right.transposed ? "'" : "");
}

// A product that runs with its epilogue is measured as the product (CudaExecutor::run_traced); the report's row and work stand where it
// runs.
void name_fused(const CudaFusedProduct& fused, LaunchWork& launches) {
  const std::string product = launches.symbols[fused.product];
  for (const uint32_t l : fused.parts) launches.symbols[l].clear();
  launches.symbols[fused.product] = product + ", " + describe(fused.gemm.epilogue);
  std::swap(launches.work[fused.product], launches.work[fused.at]);
  std::swap(launches.predicted[fused.product], launches.predicted[fused.at]);
}

// Launches that run as one are one, with the work of all.
void join(const CudaExecutable& executable, LaunchWork& launches) {
  for (size_t l = 0; l < executable.calls.size(); ++l)
    for (const uint32_t other : executable.calls[l].together) {
      launches.symbols[other].clear();
      launches.work[l] += std::exchange(launches.work[other], {});
      launches.predicted[l] += std::exchange(launches.predicted[other], 0);
    }
}

// The work is its, wherever our own kernels would do it.
void give_to_library(const CudaAttention& call, LaunchWork& launches) {
  for (const uint32_t l : call.parts)
    if (l != call.at()) {
      launches.symbols[l].clear();
      launches.work[call.at()] += std::exchange(launches.work[l], {});
      launches.predicted[call.at()] += std::exchange(launches.predicted[l], 0);
    }
  launches.symbols[call.at()] = cuda::AttentionLibrary::get()->name() + (call.parts.size() > 1 ? ", backward" : ", forward");
}

void measure_gpu(const Graph& graph, const Bindings& dims, BenchResult& result) {
  const BenchOptions& options = result.options;
  const cuda::Gpu& gpu = cuda::Gpu::get();
  CudaOptions cuda_options;
  cuda_options.gpu = gpu.shape();
  cuda_options.mode = options.mode;
  cuda_options.attention = cuda::AttentionLibrary::get();
  cuda_options.scheduling = options.scheduling;
  const double before = now();
  options.progress("compiling", 0, 0);
  const std::unique_ptr<CudaProgramText> text = compile_for_cuda(graph, dims, cuda_options);
  const CudaExecutable& executable = text->executable;
  FileCache cache(options.cached ? FileCache::default_folder() : std::filesystem::path());
  const CudaKernels kernels(executable, cache, options.threads);
  result.compile_seconds = now() - before;
  result.gpu = gpu.name();
  options.progress("measuring the machine", 0, 0);
  const cuda::GpuPeak peak = cuda::measure_peak(graph.policy == Policy::tf32 ? ProductSums::tf32 : ProductSums::f32);
  result.peak.flops = peak.f32_flops, result.peak.bf16_flops = peak.bf16_flops, result.peak.copy = peak.copy;
  const auto taken = [&] { return gpu.memory_bytes() - gpu.free_bytes(); };
  result.memory.before = taken();
  CudaExecutor executor(executable, kernels);
  ThreadPool pool(options.threads);
  executor.initialize(pool, 0);
  executor.plan_gemms();
  executor.plan_attention();
  LaunchWork launches;
  for (size_t l = 0; l < executable.calls.size(); ++l) {
    launches.symbols.push_back(executable.calls[l].gemm ? symbol_of(*executable.calls[l].gemm)
                                                        : executable.program.functions[executable.program.launches[l].function]);
  }
  std::vector<FusedProduct> fused;
  for (const size_t f : executor.fused_products()) fused.push_back(text->list.library.fused[f]);
  for (const LaunchTraffic& traffic : launch_traffic(text->list, text->plan, 0, fused)) launches.work.push_back(traffic.work);
  Device device;  // rates as measured; the cache and the cost of a launch are not, and count as none
  device.target = DeviceTarget::cuda;
  device.gpu = gpu.shape(), device.clock = gpu.clock();
  device.f32 = device.f64 = peak.f32_flops, device.bf16 = device.f16 = peak.bf16_flops, device.bandwidth = peak.copy;
  launches.predicted = predicted_times(*text, {&device, {}, executor.fused_products()});
  result.lower_bound = lower_bound_seconds(*text, device);
  join(executable, launches);
  for (const size_t f : executor.fused_products()) name_fused(executable.fused[f], launches);
  for (const size_t a : executor.library_attention()) give_to_library(executable.attention[a], launches);
  const auto run = [&](uint64_t step) {
    executor.run(0, step);
    executor.wait();
  };
  const std::vector<double> seconds = time_steps(executor, pool, run, draw_ranges(graph, dims), result);
  sum_up(executable.program, launches, seconds, result);
  result.memory.planned = executable.program.memory_bytes + executable.workspace_bytes;
  result.memory.high_water = taken();
}

}  // namespace

BenchResult measure(const Graph& graph, const Bindings& dims, const BenchOptions& options) {
  BenchResult result;
  result.options = options;
  result.policy = graph.policy == Policy::inherit ? Policy::f32 : graph.policy;
  result.algorithmic = algorithmic_flops(graph, dims);
  if (options.target == BenchTarget::cuda)
    measure_gpu(graph, dims, result);
  else
    measure_cpu(graph, dims, result);
  return result;
}

}  // namespace einc
