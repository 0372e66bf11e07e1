// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/emit_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/driver/node_names.h"
#include "compiler/gpu_plan/gpu_plan.h"
#include "compiler/lower/attention.h"
#include "compiler/lower/scan_schedule.h"

namespace einc {
namespace {

std::string described(const BoundGraph& graph, NodeId id, const std::vector<std::string>& names) {
  const std::string where = location_text(graph[id].origin.location);
  return where.empty() ? names[id.index] : fmt::format("{} ({})", names[id.index], where);
}

// Where a value lies: a source and a gradient have places of their own.
std::string place_text(const BufferPlan& plan, NodeId id, const std::vector<std::string>& names) {
  const BufferPlan::Buffer& b = plan.buffers[id.index];
  switch (b.place) {
    case BufferPlace::none:
    case BufferPlace::source:
      return "";
    case BufferPlace::gradient:
      return ", a gradient";
    case BufferPlace::in_target:
      return ", in the place of " + names[plan.holder(id).index];
    case BufferPlace::bound:
      return ", a value of the mesh's";
    case BufferPlace::arena:
    case BufferPlace::shared:
      return fmt::format(", {} bytes at {} of the arena", b.bytes, b.offset);
  }
  return "";
}

// What a processor's thread or a GPU's block has of an attention at a time.
std::string blocks_text(const GraphKernel& k) {
  const Attention& a = *k.kernel->attention;
  const int64_t rows = k.kernel->extent(a.row), keys = k.kernel->extent(a.key);
  const std::string pairs = fmt::format("{} rows by {} keys", rows, keys);
  if (const auto* tiles = k.plan ? std::get_if<AttentionTiles>(&k.plan->how) : nullptr)
    return fmt::format("{} on tensor cores in blocks of {} {}", pairs, tiles->block(), tiles->of_keys() ? "keys" : "rows");
  return rows == 1 ? fmt::format("one row at a time by {} keys", keys) : fmt::format("{} in blocks of {} rows", pairs, a.block_rows);
}

// Where scores stay in tiles, how many of them are made, and why not elsewhere.
std::string attention_text(const FormedGraph& formed, const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < formed.list.kernels.size(); ++i) {
    const Kernel& kernel = *formed.list.kernels[i].kernel;
    if (!kernel.attention) continue;
    const Attention& a = *kernel.attention;
    const int64_t rows = kernel.extent(a.row), keys = kernel.extent(a.key);
    const int64_t pairs = pairs_made(kernel) / trips(kernel, bits(a.batch) | bits(a.turns));
    text += fmt::format("kernel {} is attention: {}, {:.0f} % of the pairs made, none stored\n", i, blocks_text(formed.list.kernels[i]),
                        100 * static_cast<double>(pairs) / (static_cast<double>(rows) * static_cast<double>(keys)));
  }
  for (const FusionRefusal& r : formed.list.no_attention)
    text += fmt::format("{} are stored, not attention in tiles: {} ({})\n", described(formed.bound, r.operand, names), r.reason,
                        described(formed.bound, r.node, names));
  return text;
}

// Of one list; `before` stands in front of its numbers: those of the scan whose body it is.
class KernelListing {
 public:
  explicit KernelListing(const std::vector<std::string>& functions) : functions_(functions), seen_(functions.size(), false) {}

  void list(const BoundGraph& graph, const KernelList& kernels, const BufferPlan& plan, const Executable& program,
            const std::string& before) {
    const std::vector<std::string> names = node_names(graph.graph);
    for (size_t i = 0; i < program.launches.size(); ++i) {
      const GraphKernel& k = kernels.kernels[i];
      const Launch& launch = program.launches[i];
      const std::string number = fmt::format("{}{}", before, i);
      const bool of_library = kernels.library.product(i) != nullptr;
      text += fmt::format("\nkernel {} = {}: {}\n", number,
                          launch.scan >= 0 ? "scan"
                          : of_library     ? "a library's"
                                           : functions_[launch.function],
                          launch.label);
      if (k.when == LaunchWhen::unbounded) text += "  # only where a bound of an update does not suffice\n";
      for (NodeId id : k.group.members) text += fmt::format("  # {}\n", described(graph, id, names));
      for (size_t b = 0; b < k.buffers.size(); ++b)
        if (k.buffers[b].valid())
          text += fmt::format("  # b{} is {}{}\n", b, names[k.buffers[b].index], place_text(plan, k.buffers[b], names));
      if (launch.scan >= 0) {
        scan(*k.kernel, program.scans[static_cast<size_t>(launch.scan)], number);
      } else if (of_library || !seen_[launch.function]) {
        if (!of_library) seen_[launch.function] = true;  // a library's launch names no function
        text += to_string(*k.kernel);
      }
    }
  }
  std::string text;

 private:
  void scan(const Kernel& kernel, const ScanProgram& program, const std::string& number) {
    const ScanSchedule& s = *kernel.scan;
    text += fmt::format("{} times{}, each: kernels {}.0 to {}.{}; {} values read whole, {} by slices, {} carried\n", s.length,
                        s.direction == Direction::reverse ? ", from the last to the first" : "", number, number,
                        static_cast<int>(s.list.kernels.size()) - 1, s.wholes, s.slices, s.carries);
    list(s.bound, s.list, s.plan, program.body, number + ".");
  }

  const std::vector<std::string>& functions_;
  std::vector<bool> seen_;
};

}  // namespace

std::string emit_kernels(const FormedGraph& formed, const Executable& program) {
  KernelListing listing(program.functions);
  listing.list(formed.bound, formed.list, formed.plan, program, "");
  return fmt::format("# {} kernels, {} of them different\n", program.launches.size(), program.functions.size()) + listing.text;
}

std::string explain_fusion(const FormedGraph& formed) {
  const std::vector<std::string> names = node_names(formed.bound.graph);
  std::string text;
  for (size_t i = 0; i < formed.list.kernels.size(); ++i) {
    text += fmt::format("kernel {}{}:", i, formed.list.library.product(i) ? ", by a library" : "");
    for (NodeId id : formed.list.kernels[i].group.members) text += " " + names[id.index];
    text += '\n';
  }
  text += attention_text(formed, names);
  for (const FusionRefusal& r : formed.list.refusals)
    text += fmt::format("{} and {} are not joined: {}\n", described(formed.bound, r.operand, names), described(formed.bound, r.node, names),
                        r.reason);
  return text;
}

}  // namespace einc
