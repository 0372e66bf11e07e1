// SPDX-License-Identifier: Apache-2.0
// What `einc train` shows and logs of a run.
#pragma once
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/flops_utilisation.h"
#include "runtime/cpu/peak.h"
#include "runtime/train/loop.h"

namespace einc {

// What is known before the first step.
struct RunFacts {
  std::string model, precision, target;
  std::vector<std::pair<std::string, int64_t>> dims;
  double parameters = 0, flops = 0, tokens = 0, examples = 0;  // of a step
  bool of_tokens = false;                                      // what a reader is told: tokens, else examples
  double items() const { return of_tokens ? tokens : examples; }
  const char* item() const { return of_tokens ? "tokens" : "examples"; }
  int64_t predicted_bytes = 0;  // at the peak
  double peak_flops = 0;        // of this machine in the program's precision; 0: not known
  std::optional<double> mfu(double step_seconds) const { return flops_utilisation(flops, step_seconds, peak_flops); }
  int threads = 1;
  std::string device;  // "2 threads", "NVIDIA H200"
  uint64_t steps = 0, micro_batches = 1;
  TrainingSeeds seeds;
};

// The steps since the last one of these.
struct LogInterval {
  uint64_t step = 0;                                    // the last
  double loss = 0;                                      // mean over them
  double seconds = 0;                                   // of a step
  double elapsed = 0;                                   // since the run began, evaluations included
  std::vector<std::pair<std::string, double>> watched;  // of the last step: "learning_rate", "gradient_norm", "loss_scale"
};

struct RunResult {
  TrainingPosition position;
  uint64_t steps = 0;       // of this run
  double step_seconds = 0;  // of all its steps, without evaluations
  double elapsed = 0;
  int64_t measured_bytes = 0;
  bool interrupted = false;
};

class RunView {
 public:
  virtual ~RunView() = default;
  virtual void begin(const RunFacts& facts, const TrainingPosition& from) = 0;
  virtual void stepped(const LogInterval& now) { (void)now; }  // after each step, with the interval's figures so far
  virtual void interval(const LogInterval& interval) = 0;
  virtual void evaluated(const EvaluationRecord& record, double elapsed) = 0;  // as LogInterval's
  virtual void failed(const std::string& message) = 0;
  virtual void end(const RunResult& result) = 0;
};

// One JSON object per line: the run, each interval, each evaluation, the end. A run that is gone on with after `done` steps continues the
// file that is there, less what it says of later ones. Throws RuntimeFailure: resource, or data when that file is no log.
std::unique_ptr<RunView> json_log(const std::string& path, uint64_t done);
// A line for each; for files and pipes.
std::unique_ptr<RunView> plain_lines(std::FILE* out);
// A bar that is drawn again and again, evaluations above it.
std::unique_ptr<RunView> progress_bar(std::FILE* terminal);

// "12.3 ktokens", "4.56 GFLOP": three digits and a prefix.
std::string with_prefix(double value, std::string_view unit);
std::string duration(double seconds);  // "1:02:03"

}  // namespace einc
