// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/assemble_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "compiler/ir/init_arguments.h"
#include "compiler/ir/print.h"
#include "compiler/lower/processor_plan.h"
#include "compiler/lower/scan_schedule.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

constexpr uint32_t kNoBuffer = UINT32_MAX;

class Assembler {
 public:
  Assembler(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan, const ChooseFunction& choose)
      : graph_(graph), list_(list), plan_(plan), choose_(choose), buffer_of_(graph.graph.size(), kNoBuffer) {}

  Executable run() {
    for (uint32_t i = 0; i < graph_.graph.size(); ++i) add_buffer(NodeId{i});
    for (const Output& output : graph_.graph.outputs)
      if (plan_.buffers[output.node.index].place == BufferPlace::bound) bind(buffer_of(output.node), output.name);
    for (const BufferPlan::Snapshot& snapshot : plan_.snapshots) add_snapshot(snapshot);
    for (const GraphKernel& k : list_.kernels) add_launch(k);
    add_roots();
    add_guard();
    program_.memory_bytes = plan_.total_bytes;
    program_.own_bytes = plan_.own_bytes;
    return std::move(program_);
  }

 private:
  void add_buffer(NodeId id) {
    const BufferPlan::Buffer& b = plan_.buffers[id.index];
    if (b.place == BufferPlace::none || b.place == BufferPlace::in_target) return;
    const Node& node = graph_[id];
    ExecutableBuffer buffer;
    buffer.dtype = node.type.dtype == DType::real ? DType::f32 : node.type.dtype;
    buffer.shape.assign(graph_.shape(id).begin(), graph_.shape(id).end());
    buffer.padding = static_cast<int32_t>(graph_.padding_of(id));
    if (buffer.padding > 0) buffer.shape.back() += buffer.padding;
    buffer.bytes = b.bytes;
    buffer.offset = b.offset;
    buffer.role = b.place == BufferPlace::gradient ? BufferRole::gradient : BufferRole::arena;
    if (node.op == Op::input) buffer.role = BufferRole::input, buffer.name = node.as<InputAttr>().name.str();
    if (node.op == Op::param) set_init(buffer, BufferRole::param, node.as<ParamAttr>().path, node.as<ParamAttr>().init);
    if (node.op == Op::state) set_init(buffer, BufferRole::state, node.as<StateAttr>().path, node.as<StateAttr>().init);
    buffer_of_[id.index] = static_cast<uint32_t>(program_.buffers.size());
    program_.buffers.push_back(std::move(buffer));
  }

  // To be given an address, as inputs are.
  void bind(uint32_t buffer, Name name) {
    program_.buffers[buffer].role = BufferRole::input;
    program_.buffers[buffer].name = name.str();
  }

  void add_snapshot(const BufferPlan::Snapshot& snapshot) {
    ExecutableBuffer copy = program_.buffers[buffer_of(snapshot.source)];
    copy.role = BufferRole::arena;
    copy.name.clear();
    copy.offset = snapshot.offset;
    const auto index = static_cast<uint32_t>(program_.buffers.size());
    program_.buffers.push_back(std::move(copy));
    program_.snapshots.push_back({buffer_of(snapshot.source), index});
    snapshot_of_.emplace(snapshot.source.index, index);
  }

  void set_init(ExecutableBuffer& buffer, BufferRole role, Name path, const Init& init) const {
    buffer.role = role;
    buffer.name = path.str();
    buffer.init = init.kind;
    const auto arguments = init_arguments(init, graph_.dims);
    EINC_CHECK(arguments.has_value(), "the initialiser of '{}' has no value", path.str());
    buffer.init_arguments = *arguments;
  }

  uint32_t buffer_of(NodeId id) const {
    const uint32_t buffer = buffer_of_[plan_.holder(id).index];
    EINC_CHECK(buffer != kNoBuffer, "node {} has no buffer", id.index);
    return buffer;
  }

  uint32_t buffer_of(const Parts& parts, const BufferUse& use) {
    ExecutableBuffer buffer;
    buffer.dtype = use.dtype;
    buffer.shape = {use.count};
    buffer.bytes = use.count * bytes_of(use.dtype);
    buffer.offset = plan_.parts_offset + parts.offset;
    const auto [known, fresh] =
        parts_buffers_.try_emplace(std::tuple(buffer.offset, use.count, use.dtype), static_cast<uint32_t>(program_.buffers.size()));
    if (fresh) program_.buffers.push_back(std::move(buffer));
    return known->second;
  }

  // Where the value that a root has in this run lies when the run is over.
  uint32_t buffer_of_root(NodeId id) const {
    const auto snapshot = snapshot_of_.find(id.index);
    return snapshot != snapshot_of_.end() ? snapshot->second : buffer_of(id);
  }

  void add_launch(const GraphKernel& k) {
    Launch launch;
    launch.when = k.when;
    for (NodeId id : k.buffers) launch.buffers.push_back(id.valid() ? buffer_of(id) : kNoBuffer);
    for (const Parts& parts : k.parts) launch.buffers[parts.buffer] = buffer_of(parts, k.kernel->buffers[parts.buffer]);
    for (NodeId id : k.streams) launch.streams.push_back(graph_[id].as<RandomAttr>().stream.str());
    for (NodeId id : k.sites) launch.sites.push_back(site(id));
    if (k.loops) launch.alone = k.loops->alone;
    const Origin& origin = graph_[k.group.members.back()].origin;
    launch.label = launch_label(graph_[k.group.members.back()]);
    const SourceLocation& at = origin.location;
    if (at.line > 0) launch.location = fmt::format("{}:{}:{}", at.file.str(), at.line, at.column);
    if (k.kernel->scan || k.kernel->collective) launch.function = kNoFunction;
    if (k.kernel->scan) launch.scan = add_scan(k, launch);
    choose_(graph_, k, program_, launch);
    program_.launches.push_back(std::move(launch));
  }

  int32_t add_scan(const GraphKernel& k, Launch& launch) {
    const ScanSchedule& scan = *k.kernel->scan;
    ScanProgram made;
    made.body = assemble_program(scan.bound, scan.list, scan.plan, choose_);
    made.length = scan.length;
    made.reversed = scan.direction == Direction::reverse;
    made.all_pieces = scan.all_pieces;
    made.workspace = static_cast<uint32_t>(launch.buffers.size()) - 1;
    for (uint32_t b = 0; b < made.body.buffers.size(); ++b) {
      const ExecutableBuffer& buffer = made.body.buffers[b];
      if (!is_source(buffer.role)) continue;
      const int number = std::stoi(buffer.name);
      if (buffer.role == BufferRole::input) {
        made.buffers.push_back({b, static_cast<uint32_t>(number), 0, number >= scan.wholes ? buffer.bytes : 0});
        continue;
      }
      const ScanSchedule::Place& place = scan.places[static_cast<size_t>(number)];
      ScanBuffer at{b, place.buffer >= 0 ? static_cast<uint32_t>(place.buffer) : made.workspace, place.offset, 0};
      if (number >= scan.carries && place.buffer >= 0) at.step = buffer.bytes;  // what nobody reads has room for one iteration
      if (number < scan.carries) made.initial.push_back({b, static_cast<uint32_t>(scan.wholes + scan.slices + number), 0, 0});
      made.buffers.push_back(at);
    }
    program_.scans.push_back(std::move(made));
    return static_cast<int32_t>(program_.scans.size()) - 1;
  }

  SiteInfo site(NodeId id) const {
    const Node& node = graph_[id];
    const NodeId ids = node.operands[node.op == Op::scatter_set ? 2 : 1];
    SiteInfo info;
    info.positions = name_of(ids);
    info.shape.assign(graph_.shape(ids).begin(), graph_.shape(ids).end());
    if (node.op != Op::map) {
      const NodeId table = makes_table(node.op) ? id : node.operands[0];
      const int axis = node.as<GatherAttr>().axis;
      const Name name = graph_[table].type.axis(axis).name;
      info.table = fmt::format("axis {} of '{}'", name.empty() ? std::to_string(axis) : "'" + name.str() + "'", name_of(table));
      info.bound = graph_.shape(table)[static_cast<size_t>(axis)];
    }
    const SourceLocation& at = node.origin.location;
    if (at.line > 0) info.location = fmt::format(" ({}:{}:{})", at.file.str(), at.line, at.column);
    return info;
  }

  std::string name_of(NodeId id) const { return describe_node(graph_.graph, id); }

  void add_roots() {
    const Graph& graph = graph_.graph;
    for (const Output& output : graph.outputs) program_.outputs.push_back({output.name.str(), buffer_of_root(output.node)});
    if (graph.loss.valid() && graph_.live[graph.loss.index] && plan_.buffers[graph.loss.index].place != BufferPlace::none)
      program_.loss = static_cast<int32_t>(buffer_of_root(graph.loss));
    for (const Update& g : graph.gradients) {  // to infer, one may be there on the way to others: it is gone at the end
      const BufferPlace place = plan_.buffers[g.value.index].place;
      const bool on_the_way = place == BufferPlace::arena || place == BufferPlace::shared;
      if (graph_.live[g.value.index] && place != BufferPlace::none && !on_the_way)
        program_.gradients.push_back({name_of(g.target), buffer_of_root(g.value)});
    }
    // What a collective makes is no launch's to store.
    for (const Update& u : graph.updates) {
      const BufferPlan::Buffer& value = plan_.buffers[u.value.index];
      if (!graph_.live[u.value.index] || value.place == BufferPlace::none) continue;
      const bool there = plan_.holder(u.value) == u.target;
      if (!there && !is_collective(graph_[u.value].op)) program_.copies.push_back({buffer_of_root(u.value), buffer_of(u.target)});
    }
  }

  void add_guard() {
    const UpdateGuard& guard = graph_.guard;
    for (const UpdateGuard::Check& check : guard.checks) program_.checks.push_back({check.means, buffer_of_root(check.number)});
    program_.bounds = guard.bounds;
    for (BoundOp& op : program_.bounds)
      if (op.fn == BoundFn::number || op.fn == BoundFn::magnitude || op.fn == BoundFn::source) op.buffer = buffer_of(NodeId{op.buffer});
    for (const UpdateGuard::Bounded& update : guard.bounded)
      program_.bounded.push_back({buffer_of(update.target), update.bound, buffer_of_root(update.least), buffer_of_root(update.most)});
  }

  const BoundGraph& graph_;
  const KernelList& list_;
  const BufferPlan& plan_;
  const ChooseFunction& choose_;
  Executable program_;
  std::vector<uint32_t> buffer_of_;
  std::unordered_map<uint32_t, uint32_t> snapshot_of_;                     // by node
  std::map<std::tuple<int64_t, int64_t, DType>, uint32_t> parts_buffers_;  // by offset, count and format
};

}  // namespace

Executable assemble_program(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan, const ChooseFunction& choose) {
  return Assembler(graph, list, plan, choose).run();
}

std::string launch_label(const Node& last) {
  const Origin& origin = last.origin;
  return fmt::format("{}{}{}", origin.module.str(), origin.module.empty() ? "" : " ",
                     origin.label.empty() ? to_string(last.op) : origin.label.str());
}

}  // namespace einc
