// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/schedule_scans.h"

#include <algorithm>
#include <charconv>

#include "compiler/ir/scan.h"
#include "compiler/lower/scan_schedule.h"

namespace einc {
namespace {

constexpr int64_t kAlignment = 64;
int64_t aligned_up(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool is_piece(const Node& node) { return node.op == Op::scan && node.as<ScanAttr>().all_pieces > 0; }

void check_blocks(const Forming& body) {
  for (const Update& update : body.graph().updates) {
    const Node& value = body.graph()[update.value];
    if (value.op != Op::scan_result || !is_piece(body.graph()[value.operands[0]])) continue;
    const bool block = value.as<ScanResultAttr>().index >= body.graph()[value.operands[0]].as<ScanAttr>().carries;
    EINC_CHECK(!block || body.plan->buffers[update.value.index].place == BufferPlace::in_target, "a piece's results are copied");
  }
}

// The body has nothing that the whole decides: limits of memory and looks at updates belong to the step.
Scheduling within(const Scheduling& options, const Graph& graph) {
  Scheduling body = options.and_without("finite_state");
  // The last piece is shorter than its block: what it collects lies where it is collected, for a copy would reach beyond that.
  if (std::ranges::any_of(graph.nodes, [](const Node& node) { return is_piece(node); })) std::erase(body.without, "in_place");
  body.memory_limit.reset();
  body.observe = nullptr;
  return body;
}

std::shared_ptr<ScanSchedule> schedule_body(const Forming& whole, const Node& node) {
  const ScanAttr& attr = node.as<ScanAttr>();
  const Scheduling options = within(whole.options, *attr.body);
  KernelTarget target = whole.target;
  target.library.reset();  // a library's call knows one place of its matrices, iterations have others
  Forming body{*attr.body, whole.dims, RunMode::inference, options, target};
  run_passes(body, whole.passes);
  check_blocks(body);
  return std::make_shared<ScanSchedule>(ScanSchedule{attr.body,
                                                     std::move(body.own),
                                                     std::move(*body.bound),
                                                     std::move(body.list),
                                                     std::move(*body.plan),
                                                     whole.bound->value(attr.length),
                                                     attr.direction,
                                                     attr.all_pieces,
                                                     whole_operands(node),
                                                     attr.slices,
                                                     attr.carries,
                                                     {},
                                                     0});
}

void place_states(ScanSchedule& scan, const GraphKernel& k, const std::vector<NodeId>& results) {
  const ScanSources sources = scan_sources(*scan.body);
  const size_t operands = static_cast<size_t>(scan.wholes + scan.slices + scan.carries);
  scan.workspace_bytes = aligned_up(scan.plan.own_bytes);
  scan.places.resize(sources.states.size());
  for (size_t c = 0; c < results.size(); ++c) {
    ScanSchedule::Place& place = scan.places[c];
    for (size_t b = operands; b < k.buffers.size(); ++b)
      if (results[c].valid() && k.buffers[b] == results[c]) place.buffer = static_cast<int>(b);
    if (place.buffer >= 0) continue;
    place.offset = scan.workspace_bytes;
    Poly bytes = scan.body->type(sources.states[c]).count() * Poly(bytes_of(scan.body->type(sources.states[c]).dtype));
    scan.workspace_bytes += aligned_up(scan.bound.value(bytes));
  }
}

}  // namespace

void schedule_scans(Forming& f) {
  for (GraphKernel& k : f.list.kernels) {
    const NodeId first = k.group.members.front();
    const Node& node = f.bound->graph[first];
    if (node.op != Op::scan) continue;
    std::shared_ptr<ScanSchedule> scan = schedule_body(f, node);
    std::vector<NodeId> results(node.as<ScanAttr>().body->updates.size());
    for (NodeId id : k.group.stored) results[static_cast<size_t>(f.bound->graph[id].as<ScanResultAttr>().index)] = id;
    place_states(*scan, k, results);
    auto kernel = std::make_shared<Kernel>(*k.kernel);
    if (scan->workspace_bytes > 0) {
      k.parts.push_back({static_cast<uint16_t>(kernel->buffers.size()), 0});
      kernel->buffers.push_back({DType::u8, BufferAccess::write, scan->workspace_bytes});
      k.buffers.push_back(NodeId{});
    }
    kernel->scan = std::move(scan);
    k.kernel = std::move(kernel);
  }
}

}  // namespace einc
