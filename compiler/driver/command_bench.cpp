// SPDX-License-Identifier: Apache-2.0
// `einc bench FILE`: runs a training step (or an inference) with made-up inputs and tells what it took, in all and by
// kernel, against what this machine was measured to do at best.
#include <fmt/format.h>

#include <thread>

#include "compiler/driver/bench.h"
#include "compiler/driver/check_outputs.h"
#include "compiler/driver/command_line.h"
#include "compiler/driver/open_program.h"
#include "compiler/driver/progress.h"
#include "compiler/pipeline/cpu_program.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/data/file.h"

namespace einc {
namespace {

struct BenchRequest {
  std::string file, mode = "training", precision, trace, target = "cpu";
  std::vector<std::string> dims, import_folders, disable;
  int threads = 0, steps = 5, kernels = 12;
  std::optional<int64_t> memory_limit;
  bool no_cache = false, json = false, discard_outputs = false;
};

}  // namespace

ExitStatus bench_command(Arguments arguments) {
  CLI::App app("Measures a run on this machine, by kernel, against what the machine can do at best. Inputs are made up.", "einc bench");
  BenchRequest r;
  app.add_option("FILE", r.file, "the program")->required();
  app.add_option("-D", r.dims, "set a dim: name=value")->allow_extra_args(false)->type_name("NAME=VALUE");
  add_import_folders(app, r.import_folders);
  app.add_option("--mode", r.mode, "training: a whole step; inference: the outputs")->check(one_of({"inference", "training"}));
  app.add_flag("--discard-outputs", r.discard_outputs, "in training: leave out the program's outputs, as einc train does");
  add_precision(app, r.precision);
  add_memory_limit(app, r.memory_limit);
  app.add_option("--target", r.target, "cpu: this machine's processor; cuda: its NVIDIA GPU")->check(one_of({"cpu", "cuda"}));
  app.add_option("--threads", r.threads, "threads of the processor; all by default")->check(whole_number(1, kMaxInt));
  app.add_option("--steps", r.steps, fmt::format("steps to time, {} by default, after one warm-up step (two on a GPU)", r.steps))
      ->transform(count_between(1, kMaxInt));
  app.add_option("--kernels", r.kernels, "how many kernels the table shows")->check(whole_number(0, kMaxInt));
  app.add_option("--trace", r.trace, "write a trace of what each thread did, for Perfetto or chrome://tracing")->type_name("FILE");
  app.add_flag("--json", r.json, "print everything as JSON");
  std::vector<std::string> steps;
  for (const SchedulePass& p : processor_passes())
    if (p.optional) steps.emplace_back(p.name);
  app.add_option("--disable", r.disable, "leave out a pass of the schedule (einc --passes lists them)")->check(one_of(steps));
  app.add_flag("--no-cache", r.no_cache, "compile anew, without the cache of compiled code");
  if (auto status = parse_arguments(app, arguments)) return *status;
  const auto dims = parse_dim_settings(r.dims);
  if (!dims) return ExitStatus::wrong_usage;
  const bool trains = r.mode == "training";
  const Roots roots = !trains ? Roots::inference : r.discard_outputs ? Roots::step : Roots::training;
  const auto opened = open_program(r.file, program_options(*dims, roots, r.precision, r.import_folders));
  if (const auto* status = std::get_if<ExitStatus>(&opened)) return *status;
  const auto& c = std::get<Compilation>(opened);
  if (!c.graph->mesh.empty())
    return fmt::print(stderr, "einc: bench measures one device, and {} is for a mesh of them: measure it without its `mesh` line\n",
                      printable(r.file)),
           ExitStatus::environment;
  if (!dims_are_set(*c.graph, *dims) || !check_outputs({{"--trace", r.trace}}, sources_of(c))) return ExitStatus::wrong_usage;
  BenchOptions options;
  options.target = r.target == "cuda" ? BenchTarget::cuda : BenchTarget::cpu;
  options.mode = trains ? RunMode::training : RunMode::inference;
  options.threads = r.threads > 0 ? r.threads : static_cast<int>(std::thread::hardware_concurrency());
  options.steps = r.steps;
  options.cached = !r.no_cache;
  options.scheduling.without = r.disable;
  if (r.memory_limit) options.scheduling.memory_limit = MemoryLimit{*r.memory_limit, 0, options.threads};
  std::optional<Progress> progress;
  progress.emplace("bench");
  options.progress = [&](const char* doing, int64_t done, int64_t all) { progress->show(doing, done, all); };
  const BenchResult result = measure(*c.graph, *dims, options);
  progress.reset();
  if (!r.trace.empty()) {
    const std::string trace = bench_trace(result);
    const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(trace))};
    write_file(r.trace, pieces);
  }
  fmt::print("{}", r.json ? bench_json(r.file, result) : bench_text(result, r.kernels));
  return ExitStatus::done;
}

}  // namespace einc
