// SPDX-License-Identifier: Apache-2.0
// The grammar is that of schedule_text.h; the loops of a kernel are to_string(kernel).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/lower/processor_plan_text.h"
#include "compiler/lower/scan_schedule.h"
#include "compiler/lower/schedule_names.h"
#include "compiler/lower/schedule_text.h"

namespace einc {
namespace {

std::string value_of(NodeId id) { return id.valid() ? fmt::format("%{}", id.index) : "-"; }

std::string values_of(std::string_view word, const std::vector<NodeId>& values) {
  std::string text(word);
  for (const NodeId id : values) text += " " + value_of(id);
  return text + "\n";
}

std::string text_of(const LibraryMatrix& m) {
  return fmt::format("%{} {} from {} leading {} batch {}{}", m.buffer, to_string(m.dtype), m.offset, m.leading, m.batch_stride,
                     m.transposed ? " transposed" : "");
}

std::string text_of(const LibraryProduct& p) {
  std::string text = fmt::format("of {} x {} x {} x {} sums {} left {} right {} result {}", p.batch, p.rows, p.columns, p.depth,
                                 name_of(p.sums), text_of(p.left), text_of(p.right), text_of(p.result));
  const LibraryEpilogue& e = p.epilogue;
  const auto numbers = [&](std::string_view word, const std::optional<LibraryVector>& v) {
    if (v) text += fmt::format(" {} %{} {}", word, v->buffer, to_string(v->dtype));
  };
  const auto value = [&](std::string_view word, const std::optional<uint32_t>& v) {
    if (v) text += fmt::format(" {} %{}", word, *v);
  };
  value("scale", p.scale);
  numbers("bias", e.bias);
  value("addend", e.addend);
  if (e.activation != LibraryActivation::none) text += fmt::format(" {}", name_of(e.activation));
  value("input", e.input);
  numbers("left_sums", e.left_sums);
  numbers("right_sums", e.right_sums);
  return text + "\n";
}

std::string text_of(const AttentionCall& call) {
  const einc_attention_problem& p = call.problem;
  std::string text = fmt::format("plugin {} {}{}{}{} scale {:a} of {} x {} per {} x {} x {} x {} x {} workspace {} instead of {} with",
                                 call.is_backward() ? "backward" : "forward", p.dtype == EINC_ATTENTION_BF16 ? "bf16" : "f16",
                                 p.mask == EINC_ATTENTION_CAUSAL ? " causal" : "", p.keeps_log_sum ? " keeps_log_sum" : "",
                                 p.deterministic ? " deterministic" : "", p.scale, p.batch, p.query_heads, p.key_heads, p.queries, p.keys,
                                 p.head_size, p.value_size, call.workspace_bytes, fmt::join(call.parts, " "));
  for (const auto& [name, operand, steps] : kAttentionOperands) {
    const AttentionCall::Operand& o = call.*operand;
    const einc_attention_steps& s = p.*steps;
    if (o.value.valid()) text += fmt::format(" {} {} from {} steps {} {} {}", name, value_of(o.value), o.offset, s.batch, s.head, s.row);
  }
  return text + "\n";
}

std::string text_of(const ScanSchedule& scan) {
  std::string text = fmt::format("scan of {} iterations{} pieces {} wholes {} slices {} carries {} workspace {}\n", scan.length,
                                 scan.direction == Direction::reverse ? " reverse" : "", scan.all_pieces, scan.wholes, scan.slices,
                                 scan.carries, scan.workspace_bytes);
  for (const ScanSchedule::Place& place : scan.places)
    text += place.buffer >= 0 ? fmt::format("state b{}\n", place.buffer) : fmt::format("state at {}\n", place.offset);
  return text;
}

std::string text_of(const KernelList& list, const BufferPlan* plan, const GpuPlanText& gpu, const KernelNotes& notes);

std::string text_of(const GraphKernel& k, size_t number, const GpuPlanText& gpu) {
  std::string text = fmt::format("kernel {} {}\n", number, name_of(k.when));
  text += values_of("members", k.group.members) + values_of("stored", k.group.stored);
  if (k.group.siblings) text += "siblings\n";
  if (k.group.base.valid()) text += fmt::format("base {}\n", value_of(k.group.base));
  text += values_of("buffers", k.buffers);
  for (const Parts& p : k.parts) text += fmt::format("parts b{} at {}\n", p.buffer, p.offset);
  if (!k.streams.empty()) text += values_of("streams", k.streams);
  if (!k.sites.empty()) text += values_of("sites", k.sites);
  const ScanSchedule* scan = k.kernel->scan.get();
  if (scan != nullptr)
    return text + text_of(*scan) + to_string(*k.kernel) + "body\n" + prefix_lines(text_of(scan->list, &scan->plan, gpu, {}), "  ") +
           "end\n";
  text += to_string(*k.kernel);
  if (k.loops) text += fmt::format("plan {}\n", to_string(*k.loops));
  if (k.plan && gpu.print) text += fmt::format("gpu_plan {}\n", gpu.print(*k.plan));
  return text;
}

std::string together(const std::vector<uint32_t>& runs_with) {
  std::string text;
  for (uint32_t leader = 0; leader < runs_with.size(); ++leader) {
    std::string others;
    for (uint32_t k = leader + 1; k < runs_with.size(); ++k)
      if (runs_with[k] == leader) others += fmt::format(" {}", k);
    if (!others.empty()) text += fmt::format("together {}{}\n", leader, others);
  }
  return text;
}

std::string places(const BufferPlan& plan) {
  std::string text;
  for (uint32_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferPlan::Buffer& b = plan.buffers[i];
    if (b.place == BufferPlace::none) continue;
    text += fmt::format("place %{} {} ", i, name_of(b.place));
    text += b.place == BufferPlace::in_target ? fmt::format("%{} of {}\n", b.target.index, b.bytes)
                                              : fmt::format("at {} of {}\n", b.offset, b.bytes);
  }
  for (const BufferPlan::Snapshot& s : plan.snapshots) text += fmt::format("snapshot {} at {}\n", value_of(s.source), s.offset);
  return text +
         fmt::format("memory arena {} parts at {} own {} of {}\n", plan.arena_bytes, plan.parts_offset, plan.own_bytes, plan.total_bytes);
}

std::string text_of(const KernelList& list, const BufferPlan* plan, const GpuPlanText& gpu, const KernelNotes& notes) {
  std::string text;
  for (size_t i = 0; i < list.kernels.size(); ++i) {
    if (notes) text += "\n" + prefix_lines(notes(i), "# ");
    text += text_of(list.kernels[i], i, gpu);
  }
  for (const Continued& c : list.continued) text += fmt::format("continued {} from {}\n", value_of(c.whole), value_of(c.base));
  if (list.in_place) text += "in_place\n";
  if (list.numbers_apart) text += "numbers_apart\n";
  for (size_t k = 0; k < list.kernels.size(); ++k)
    if (const LibraryProduct* product = list.library.product(k)) text += fmt::format("product {} ", k) + text_of(*product);
  for (const FusedProduct& f : list.library.fused)
    text += fmt::format("fused {} at {} plain {} ", fmt::join(f.parts, " "), f.at, f.plain) + text_of(f.product);
  for (const AttentionCall& call : list.library.attention) text += text_of(call);
  for (const HeldValue& h : list.library.held)
    text += fmt::format("held {} until {}{}\n", value_of(h.value), h.until, h.from == UINT32_MAX ? "" : fmt::format(" from {}", h.from));
  text += together(list.runs_with);
  return plan ? text + places(*plan) : text;
}

}  // namespace

std::string prefix_lines(std::string_view lines, std::string_view prefix) {
  std::string text;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    text += fmt::format("{}{}\n", prefix, lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

std::string print_schedule(const KernelList& list, const BufferPlan* plan, const GpuPlanText& gpu, const KernelNotes& notes) {
  return fmt::format("schedule {}\n", kScheduleFormat) + text_of(list, plan, gpu, notes);
}

}  // namespace einc
