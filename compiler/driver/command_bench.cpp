// `einc bench FILE`: runs a training step (or an inference) with made-up inputs and tells what it took, in all and by
// kernel, against what this machine was measured to do at best.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "compiler/driver/command_line.h"
#include "compiler/driver/open_program.h"
#include "compiler/ir/text.h"
#include "compiler/lower/kernel_work.h"
#include "compiler/pipeline/cpu_program.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/base/float_format.h"
#include "runtime/base/random.h"
#include "runtime/cpu/peak.h"
#include "runtime/executor/executor.h"

namespace einc {
namespace {

struct BenchRequest {
  std::string file, mode = "training", precision;
  std::vector<std::string> dims;
  int threads = 0, steps = 5, kernels = 12;
  bool no_cache = false;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Reals in [0, 1); integers in [0, bound) of every table they may index.
void make_inputs(Executor& session, const Executable& program) {
  int64_t bound = 2;
  for (const Launch& launch : program.launches)
    for (const SiteInfo& site : launch.sites) bound = bound == 2 ? site.bound : std::min(bound, site.bound);
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const ExecutableBuffer& buffer = program.buffers[b];
    if (buffer.role != BufferRole::input) continue;
    const PhiloxKey key = random_key(0, buffer.name);
    std::byte* at = session.bytes(b).data();
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

struct KernelRow {
  std::string label;
  double seconds = 0;
  int64_t launches = 0;
  KernelWork work;
};

// Launches of one function together, the slowest first.
std::vector<KernelRow> rows_of(const CpuProgram& cpu, const std::vector<double>& seconds) {
  const Executable& program = cpu.program();
  std::vector<KernelRow> rows(program.functions.size());
  for (size_t l = 0; l < program.launches.size(); ++l) {
    KernelRow& row = rows[program.launches[l].function];
    const KernelWork work = work_of(*cpu.lowered().list.kernels[l].kernel);
    if (row.launches++ == 0) row.label = program.launches[l].label;
    row.seconds += seconds[l];
    row.work.contraction += work.contraction;
    row.work.elementwise += work.elementwise;
    row.work.reduction += work.reduction;
    row.work.bytes_read += work.bytes_read;
    row.work.bytes_written += work.bytes_written;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const KernelRow& a, const KernelRow& b) { return a.seconds > b.seconds; });
  return rows;
}

void print_rows(const std::vector<KernelRow>& rows, const CpuPeak& peak, int shown) {
  double total = 0, rest = 0;
  for (const KernelRow& r : rows) total += r.seconds;
  fmt::print("{:<36} {:>8} {:>9} {:>6} {:>9} {:>7} {:>8}\n", "kernel (its first launch)", "launches", "ms", "share", "GFLOP/s", "GB/s",
             "of bound");
  for (size_t i = 0; i < rows.size(); ++i) {
    const KernelRow& r = rows[i];
    if (static_cast<int>(i) >= shown) {
      rest += r.seconds;
      continue;
    }
    const auto flops = static_cast<double>(r.work.flops()), bytes = static_cast<double>(r.work.bytes_read + r.work.bytes_written);
    const double bound = std::max(flops / peak.flops, bytes / peak.bandwidth);
    fmt::print("{:<36} {:>8} {:>9.3f} {:>5.1f}% {:>9.1f} {:>7.1f} {:>7.0f}%\n", r.label.substr(0, 36), r.launches, r.seconds * 1e3,
               100 * r.seconds / total, flops / r.seconds * 1e-9, bytes / r.seconds * 1e-9, 100 * bound / r.seconds);
  }
  if (rest > 0) fmt::print("{:<36} {:>8} {:>9.3f} {:>5.1f}%\n", "others", "", rest * 1e3, 100 * rest / total);
}

void bench(const BenchRequest& request, const Graph& graph, const Bindings& dims) {
  CpuOptions options;
  options.mode = request.mode == "training" ? RunMode::training : RunMode::inference;
  if (request.no_cache) options.cache.clear();
  const double before = now();
  const CpuProgram cpu(graph, dims, options);
  const double compiled = now() - before;
  const int threads = request.threads > 0 ? request.threads : static_cast<int>(std::thread::hardware_concurrency());
  Executor session(cpu.program(), cpu.functions(), threads);
  session.initialize(0);
  make_inputs(session, cpu.program());
  const CpuPeak peak = measure_peak(session.pool());
  session.run(0, 0);
  std::vector<double> steps, launches;
  for (int i = 0; i < request.steps; ++i) {
    const double start = now();
    session.run(0, static_cast<uint64_t>(i) + 1);
    steps.push_back(now() - start);
  }
  session.run_timed(0, static_cast<uint64_t>(request.steps) + 1, launches);
  KernelWork all;
  for (const GraphKernel& k : cpu.lowered().list.kernels) {
    const KernelWork work = work_of(*k.kernel);
    all.contraction += work.contraction;
    all.elementwise += work.elementwise + work.reduction;
  }
  const auto [fastest, slowest] = std::minmax_element(steps.begin(), steps.end());
  const double step = median(steps);
  fmt::print("machine    {:.0f} GFLOP/s f32, {:.1f} GB/s copied, measured on {} thread{}\n", peak.flops * 1e-9, peak.bandwidth * 1e-9,
             threads, threads == 1 ? "" : "s");
  fmt::print("compiled   {:.3f} s; {} launches of {} kernels\n", compiled, cpu.program().launches.size(), cpu.program().functions.size());
  fmt::print("step       {:.3f} ms, median of {} ({:.3f} to {:.3f})\n", step * 1e3, request.steps, *fastest * 1e3, *slowest * 1e3);
  fmt::print("work       {:.3f} GFLOP in contractions, {:.3f} in the rest: {:.1f} GFLOP/s, {:.1f} % of the peak\n\n",
             static_cast<double>(all.contraction) * 1e-9, static_cast<double>(all.elementwise) * 1e-9,
             static_cast<double>(all.flops()) / step * 1e-9, 100 * static_cast<double>(all.flops()) / step / peak.flops);
  print_rows(rows_of(cpu, launches), peak, request.kernels);
}

}  // namespace

ExitStatus bench_command(Arguments arguments) {
  CLI::App app("Measures a run on this machine, by kernel, against what the machine can do at best. Inputs are made up.", "einc bench");
  BenchRequest r;
  app.add_option("FILE", r.file, "the program")->required();
  app.add_option("-D", r.dims, "set a dim: name=value")->allow_extra_args(false)->type_name("NAME=VALUE");
  app.add_option("--mode", r.mode, "training: a whole step; inference: the outputs")->check(CLI::IsMember({"inference", "training"}));
  app.add_option("--precision", r.precision, "f32, bf16, f16 or fp8: overrides the file's policy")
      ->check(CLI::IsMember({"f32", "bf16", "f16", "fp8"}));
  app.add_option("--threads", r.threads, "of the processor; all when not given")->check(CLI::PositiveNumber);
  app.add_option("--steps", r.steps, "steps to time after one that is not")->check(CLI::PositiveNumber);
  app.add_option("--kernels", r.kernels, "rows of the table of kernels")->check(CLI::NonNegativeNumber);
  app.add_flag("--no-cache", r.no_cache, "compile anew, whatever was compiled before");
  if (auto status = parse_arguments(app, arguments)) return *status;
  const auto dims = parse_dim_settings(r.dims);
  if (!dims) return ExitStatus::wrong_usage;
  if (const auto problem = unreadable(r.file)) return fmt::print(stderr, "einc: {}\n", *problem), ExitStatus::environment;
  PipelineOptions pipeline;
  pipeline.dims = *dims;
  pipeline.roots = r.mode == "training" ? Roots::training : Roots::inference;
  if (!r.precision.empty()) pipeline.precision = *parse_policy(r.precision);
  const Compilation c = compile_file(r.file, pipeline);
  print_diagnostics(c.sources, c.diagnostics, DiagnosticsForm::text, Severity::warning);
  if (!c.graph) return ExitStatus::wrong_program;
  bench(r, *c.graph, *dims);
  return ExitStatus::done;
}

}  // namespace einc
