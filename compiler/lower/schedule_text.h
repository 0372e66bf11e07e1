// SPDX-License-Identifier: Apache-2.0
// A schedule as text: kernels with the nodes behind their buffers, what a library may do of them, what runs together, and where values lie.
// It reads back, so that passes over kernel lists are tested from text. Nodes are numbers of a graph (%7), whose own text is print_graph's.
//
//   schedule 1                         the format's number
//   kernel 3 checked                   when it runs; its lines up to the next heading, then those of read_kernel
//   members %4 %5                      nodes computed; then stored, siblings, base, streams, sites where it has them
//   buffers %1 - %5                    the values behind its buffers; - for parts of sums
//   parts b1 at 128
//   scan of 8 iterations pieces 0 wholes 1 slices 1 carries 1 workspace 64     of a recurrence, before its lines; `reverse` where it goes
//   back state b3                           where each state lies: a buffer of the kernel, or a place in the workspace (`at 0`) body behind
//   its lines: the schedule of an iteration, up to `end` end
//   ...
//   plan loops lanes 16 ... domain 64         behind a kernel's lines, how it runs where that is planned; of a GPU: gpu_plan threads ...
//   continued %7 from %3
//   product 4 of 1 x 128 x 512 x 64 sums f32 left %4 bf16 from 0 leading 64 batch 0 right ... result ...    instead of kernel 4
//   fused 4 5 at 5 plain 4 of ...                                                                           or instead of both
//   plugin forward bf16 causal scale 0x1p-3 of 2 x 4 per 2 x 33 x 33 x 64 x 64 workspace 0 instead of 7 with q %4 from 0 steps 64 16 8 ...
//   held %4 until 5
//   together 6 9
//   place %4 arena at 128 of 64
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/ir/cursor.h"
#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/kernel_list.h"
#include "compiler/lower/processor_plan.h"

namespace einc {

// What follows from the rest is not in it: why nodes were not joined, and the plan's sums of bytes.
struct ScheduleText {
  KernelList list;
  BufferPlan plan;  // without places before there is one
};

// What else is known of a kernel, in lines that stand before it as a comment.
using KernelNotes = std::function<std::string(size_t kernel)>;
// How a GPU's plans are written and read (gpu_plan/gpu_plan_fields); without it they are left out, and none are read.
struct GpuPlanText {
  std::function<std::string(const GpuPlan& plan)> print{};
  std::function<std::shared_ptr<const GpuPlan>(Cursor& line, const Kernel& kernel)> read{};
};
// Each of `lines` behind `prefix`, with a line's end behind the last one, too.
std::string prefix_lines(std::string_view lines, std::string_view prefix);

// `plan` may be null. Comments name nothing.
std::string print_schedule(const KernelList& list, const BufferPlan* plan, const GpuPlanText& gpu = {}, const KernelNotes& notes = {});

// Nodes are numbers below `nodes`. Equal kernels are one object, as are their plans. `bodies`: the scans in the order of the text, a scan
// before those of its body (scans_of), for the graphs that numbers within bodies mean; they must outlive what is read.
std::variant<ScheduleText, LineError> read_schedule(std::string_view text, uint32_t nodes,
                                                    std::span<const std::shared_ptr<const ScanSchedule>> bodies = {},
                                                    const GpuPlanText& gpu = {});
std::vector<std::shared_ptr<const ScanSchedule>> scans_of(const KernelList& list);

}  // namespace einc
