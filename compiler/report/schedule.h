// SPDX-License-Identifier: Apache-2.0
// The launches of a planned step, what each does and how long it takes on a device.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/cost/device.h"
#include "compiler/fuse/form_graph.h"
#include "compiler/lower/kernel_work.h"
#include "compiler/lower/launch_traffic.h"
#include "compiler/lower/processor.h"

namespace einc {

// What takes a launch longest. `vector`: elementwise work and reductions.
enum class LaunchBound : uint8_t { none, contraction, vector, memory, cache, launch };
std::string_view to_string(LaunchBound bound);

// Launches alike but for the loop iteration they stand in. Figures are those of one of them, memory's bytes and the time the mean of
// all (what a cache still holds differs); `share` is what all take.
struct LaunchReport {
  std::string name;    // of what it makes: "h.*.mlp: w_in contract +3", with three further ops
  std::string module;  // "h.*.mlp", of which the name begins; empty for none
  std::string kind;    // "attention", "contraction", "reduction", "elementwise"
  SourceLocation source;
  Phase phase = Phase::forward;
  int64_t count = 1;
  LaunchTraffic traffic;
  std::optional<double> time_s;  // without a device, or a peak for the number format: none
  LaunchBound bound = LaunchBound::none;
  double share = 0;  // of the step's time with a device, else of its FLOPs
};

inline constexpr uint32_t kNoRow = UINT32_MAX;

// What launches are timed for.
struct TimedMachine {
  const Device* device = nullptr;        // none: no times
  std::optional<Processor> processor{};  // that kernels are planned for, where the device is one; an optimist's when not given
  // Which of the list's products with epilogues run instead of their parts. Not given: those that take no longer by the times given here,
  // as a GPU's measurement decides.
  std::optional<std::vector<size_t>> fused{};
};

// In the order of their first launches. What runs in the first step alone, as a rule, is not among them, nor what an epilogue does.
// `row_of` gets the row of each launch of the plan.
std::vector<LaunchReport> schedule_report(const FormedGraph& formed, const TimedMachine& machine, std::vector<uint32_t>& row_of);

// What the launches of a step do, as a rule: what runs in the first step alone is not among them.
struct ExecutedWork {
  KernelWork work;
  Rational flops;
};
// `counts`: of kernel numbers; none: all.
ExecutedWork executed_work(const KernelList& list, const std::function<bool(size_t)>& counts = {});

// "scores contract", "mul": the source's name for a value and the op.
std::string what(const Node& node);

}  // namespace einc
