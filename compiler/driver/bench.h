// SPDX-License-Identifier: Apache-2.0
// What `einc bench` measures, as data, and the forms in which it is shown.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/fuse/schedule_passes.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/interpret.h"
#include "compiler/lower/kernel_work.h"
#include "runtime/base/flops_utilisation.h"
#include "runtime/cpu/peak.h"
#include "runtime/executor/executor.h"

namespace einc {

enum class BenchTarget : uint8_t { cpu, cuda };

struct BenchOptions {
  BenchTarget target = BenchTarget::cpu;
  RunMode mode = RunMode::training;
  int threads = 1, steps = 5;
  Scheduling scheduling = Scheduling::all;
  bool cached = true;  // machine code compiled before may be used
  // Told what is done now, and which step of how many; 0 of 0 before the steps.
  std::function<void(const char* doing, int64_t done, int64_t all)> progress = [](const char*, int64_t, int64_t) {};
};

// All launches of one function.
struct KernelTime {
  std::string symbol, label;  // the label of its first launch; a product of cuBLASLt has its matrices for a symbol
  int64_t launches = 0;
  double seconds = 0, predicted = 0;  // of all; predicted for the machine as measured
  KernelWork work;
};

struct BenchMemory {
  int64_t planned = 0;     // bytes of the executor: buffers, and the threads' own or cuBLASLt's workspace
  int64_t before = 0;      // resident before the executor was made: compiler, libraries; of a GPU, what was taken of its memory
  int64_t high_water = 0;  // the process' VmHWM after the last step; of a GPU, what is taken then
};

struct BenchResult {
  BenchOptions options;
  Policy policy = Policy::f32;
  std::string gpu;  // its name; empty: the processor
  CpuPeak peak;     // of the GPU: products by cuBLASLt, and the copy
  double compile_seconds = 0;
  std::vector<double> steps;          // seconds of each, in the order they ran
  std::vector<double> traced;         // of all launches of a step together, of steps in which each launch was timed
  double step = 0;                    // their median
  double predicted = 0;               // by the report's model of launches, for the machine as measured
  std::optional<double> lower_bound;  // report/lower_bound.h, likewise
  double algorithmic = 0;             // FLOPs of a step by the report's counting rules
  KernelWork executed;                // of the kernels, as their loops count
  BenchMemory memory;
  std::vector<KernelTime> kernels;  // the slowest first
  std::vector<std::string> labels;  // of launches
  int64_t launches = 0;             // of a step, without those that only updates without a bound need
  std::vector<LaunchSpan> spans;    // of one step

  // FLOPs a second that contractions of the program's precision could do at best.
  double peak_flops() const { return policy == Policy::bf16 && peak.bf16_flops > 0 ? peak.bf16_flops : peak.flops; }
  std::optional<double> mfu() const { return flops_utilisation(algorithmic, step, peak_flops()); }
};

// Inputs are made up: reals in [0, 1), integers within every table they index.
BenchResult measure(const Graph& graph, const Bindings& dims, const BenchOptions& options);

std::string bench_text(const BenchResult& result, int kernels);
std::string bench_json(const std::string& model, const BenchResult& result);
// Chrome's trace events (also Perfetto's): one complete event for each thread's part of each launch, in microseconds.
std::string bench_trace(const BenchResult& result);

}  // namespace einc
