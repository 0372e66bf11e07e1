// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/emit_schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/gpu_plan/gpu_plan_fields.h"
#include "compiler/lower/scan_schedule.h"
#include "compiler/lower/schedule_text.h"

namespace einc {
namespace {

std::string axis_text(const Kernel& kernel, AxisId axis) { return fmt::format("a{} ({})", axis, kernel.extent(axis)); }

std::string axes_text(const Kernel& kernel, const std::vector<AxisId>& axes) {
  std::vector<std::string> each;
  for (const AxisId a : axes) each.push_back(axis_text(kernel, a));
  return fmt::format("{}", fmt::join(each, ", "));
}

std::string buffers_text(const std::vector<bool>& chosen) {
  std::vector<std::string> each;
  for (size_t b = 0; b < chosen.size(); ++b)
    if (chosen[b]) each.push_back(fmt::format("b{}", b));
  return fmt::format("{}", fmt::join(each, ", "));
}

std::string line_of_buffers(std::string_view what, const std::vector<bool>& chosen) {
  const std::string list = buffers_text(chosen);
  return list.empty() ? "" : fmt::format("  {}: {}\n", what, list);
}

std::string source_text(PanelSource source, std::string_view along) {
  switch (source) {
    case PanelSource::in_place:
      return "where it lies";
    case PanelSource::by_depth:
      return "from a panel, filled by vectors along depth";
    case PanelSource::by_width:
      return fmt::format("from a panel, filled by vectors along {}", along);
  }
  return "";
}

std::string loops(const Kernel& kernel, const LoopPlan& plan) {
  std::string text = "  loops";
  if (plan.outer_vector) {
    text += fmt::format(": vectors of {} along {}", plan.lanes, axis_text(kernel, *plan.outer_vector));
    if (plan.turned) text += fmt::format(", what lies along {} read in squares and transposed", axis_text(kernel, *plan.turned));
  } else {
    std::vector<std::string> stages;
    for (size_t s = 0; s < plan.stage_vector.size(); ++s)
      if (plan.stage_vector[s]) stages.push_back(fmt::format("{} in stage {}", axis_text(kernel, *plan.stage_vector[s]), s));
    text += stages.empty() ? ": one element at a time" : fmt::format(": vectors of {} along {}", plan.lanes, fmt::join(stages, ", "));
  }
  text += fmt::format("\n  {} parts for threads", plan.domain);
  if (!plan.divided.empty()) text += ": points of " + axes_text(kernel, plan.divided);
  if (plan.outer_vector && plan.chunk < kernel.extent(*plan.outer_vector))
    text += fmt::format("{} chunks of {} of a{}", plan.divided.empty() ? ":" : " in", plan.chunk, *plan.outer_vector);
  if (plan.owns_rows) text += ": rows that are folded into, each part going over all indices";
  if (plan.whole_rows) text += ", row by row";
  if (!plan.inner.empty()) text += "; loops inside over " + axes_text(kernel, plan.inner);
  for (size_t s = 0; s < plan.kept.size(); ++s)
    if (plan.kept[s]) text += fmt::format("\n  the element that stage {} folds into stays in registers until the next one", s);
  return text + "\n" + line_of_buffers("fetched a page ahead", plan.fetched) + line_of_buffers("stored past the caches", plan.streamed);
}

std::string microkernel_text(const TiledContraction& t) {
  switch (t.microkernel) {
    case Microkernel::vectors:
      return fmt::format("vectors of {} {}", t.lanes, to_string(t.dtype));
    case Microkernel::bf16_pairs:
      return fmt::format("vectors of {} {}, pairs of bf16 at a time", t.lanes, to_string(t.dtype));
    case Microkernel::matrix_tiles:
      return "matrix tiles of 16 x 32 bf16";
  }
  return "";
}

std::string tiles(const TiledContraction& t) {
  std::string text = fmt::format("  contraction: {}{} x {}, depth {}\n", t.batches > 1 ? fmt::format("{} of ", t.batches) : "", t.rows(),
                                 t.columns(), t.depths());
  text += fmt::format("  tiles of {} x {} sums, {}\n", t.tile_rows, t.tile_columns(), microkernel_text(t));
  const std::string in_groups =
      t.left_groups ? fmt::format(", by groups of {} depths and rows by {}", t.left_groups->depths, t.left_groups->rows) : "";
  text += fmt::format("  left operand {}{}; right operand {}\n", source_text(t.left, "rows"), in_groups, source_text(t.right, "columns"));
  if (const auto left_out = t.left_out())
    text += fmt::format("  {:.3g} % of the products are with zeros around an image, and left out\n", 100 * (1 - left_out->share()));
  text += fmt::format("  blocks of {} rows, {} columns, depth {}", std::min(t.block_rows, t.rows()), std::min(t.block_columns, t.columns()),
                      t.block_depth);
  if (t.microkernel == Microkernel::matrix_tiles && t.cached_depth < t.block_depth)
    text += fmt::format(" multiplied in parts of {}", t.cached_depth);
  if (t.right != PanelSource::in_place) text += fmt::format("; right panels of {} columns", t.panel_columns());
  if (t.right_panels == 2) text += ", one filled while the other is read";
  text += fmt::format("\n  {} parts for threads: tiles of {}{}\n", t.domain(), t.shared == SharedAxis::rows ? "rows" : "columns",
                      t.batches > 1 ? " of each" : "");
  return text + line_of_buffers("stored past the caches", t.streamed) + fmt::format("  {} bytes of each thread\n", t.scratch_bytes());
}

std::string attention(const TiledAttention& t) {
  return fmt::format(
      "  attention: {} of {} rows by {} keys, blocks of {} rows, vectors of {}\n  {} parts for threads\n  {} bytes of each thread\n",
      t.batches, t.rows(), t.keys(), t.block_rows(), t.lanes, t.domain(), t.scratch_bytes());
}

std::string plan_of(const GraphKernel& k) {
  if (k.plan) return to_string(*k.plan, *k.kernel);
  const ProcessorPlan& p = *k.loops;
  const std::string text = p.attention ? attention(*p.attention) : p.tiles ? tiles(*p.tiles) : loops(*k.kernel, p.plan);
  return text + (p.alone ? "  one thread does all of it\n" : "");
}

std::string described(const Launch& launch) { return launch.label + (launch.location.empty() ? "" : fmt::format(", {}", launch.location)); }

// What a launch makes and how; of a scan its iteration's, further in.
std::string notes_of(const Executable& program, size_t index, const KernelList& list) {
  const Launch& launch = program.launches[index];
  if (launch.scan < 0)
    return described(launch) + "\n" + (list.library.product(index) ? std::string("  by a library\n") : plan_of(list.kernels[index]));
  const ScanProgram& scan = program.scans[static_cast<size_t>(launch.scan)];
  std::string text = fmt::format("{}\n  {} iterations{} of {} launches, {} bytes of workspace\n", described(launch), scan.length,
                                 scan.reversed ? ", from the last to the first," : "", scan.body.launches.size(), scan.body.own_bytes);
  const KernelList& body = list.kernels[index].kernel->scan->list;
  for (size_t i = 0; i < scan.body.launches.size(); ++i) text += prefix_lines(notes_of(scan.body, i, body), "    ");
  return text;
}

std::string schedule_of(const FormedGraph& formed, const Executable& program) {
  return print_schedule(formed.list, &formed.plan, gpu_plan_text(), [&](size_t kernel) { return notes_of(program, kernel, formed.list); });
}

}  // namespace

std::string emit_schedule(const LoweredGraph& lowered, const Processor& processor) {
  const Executable& program = lowered.lowered.program;
  return schedule_of(lowered, program) + fmt::format("# {} launches of {} functions; vectors of {} bits{}, {} and {} KiB of cache\n",
                                                     program.launches.size(), program.functions.size(), processor.vector_bits,
                                                     processor.matrix_tiles ? " and matrix tiles"
                                                     : processor.bf16_pairs ? " and pairs of bf16"
                                                                            : "",
                                                     processor.level1_bytes >> 10, processor.level2_bytes >> 10);
}

std::string emit_schedule(const CudaProgramText& made) {
  const Executable& program = made.executable.program;
  return schedule_of(made, program) + fmt::format("# {} launches of {} functions on {} with {} processors\n", program.launches.size(),
                                                  program.functions.size(), made.gpu.arch(), made.gpu.processors);
}

}  // namespace einc
