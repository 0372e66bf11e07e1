// SPDX-License-Identifier: Apache-2.0
// Launches and collectives meet in values, which are those that the device was planned with (report/planned_device.h).
#include "compiler/api/mesh_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "compiler/api/verify_mesh.h"
#include "compiler/context/partition_for_mesh.h"
#include "compiler/partition/localize.h"
#include "runtime/base/check.h"
#include "runtime/base/debug.h"

namespace einc {
namespace {

static_assert(kNoPlace == kElsewhere);  // offsets are taken over as they are

ReduceKind to_runtime(ReduceFn fn) {
  switch (fn) {
    case ReduceFn::sum:
      return ReduceKind::sum;
    case ReduceFn::max:
      return ReduceKind::max;
    case ReduceFn::min:
      return ReduceKind::min;
    case ReduceFn::prod:
      return ReduceKind::prod;
    case ReduceFn::any:
      return ReduceKind::any;
    case ReduceFn::all:
      return ReduceKind::all;
    case ReduceFn::logsumexp:
      break;
  }
  EINC_CHECK(false, "{} over devices", to_string(fn));
  return ReduceKind::sum;
}

CollectiveKind kind_of_collective(Op op) {
  EINC_CHECK(is_collective(op), "{} moves nothing between devices", to_string(op));
  return op == Op::all_reduce       ? CollectiveKind::all_reduce
         : op == Op::reduce_scatter ? CollectiveKind::reduce_scatter
         : op == Op::all_gather     ? CollectiveKind::all_gather
         : op == Op::shift          ? CollectiveKind::shift
                                    : CollectiveKind::all_to_all;
}

DeviceTensor tensor_of(const Type& type, const Bindings& dims, int64_t offset) {
  DeviceTensor value{type.dtype == DType::real ? DType::f32 : type.dtype, {}, 0, offset};
  for (const Axis& axis : type.axes) value.shape.push_back(axis.size.evaluate_integer(dims).value());
  value.bytes = TensorInfo{"", value.dtype, {}, value.shape}.bytes();
  return value;
}

MeshCollective to_runtime(const Node& node, uint32_t from, uint32_t to) {
  if (const auto* a = std::get_if<ShiftAttr>(&node.attr)) return {CollectiveKind::shift, a->mesh, ReduceKind::sum, 0, 0, from, to, a->by};
  const CollectiveAttr& a = node.as<CollectiveAttr>();
  return {kind_of_collective(node.op), a.mesh, to_runtime(a.fn), a.gathered, a.divided, from, to};
}

class PlanMaker {
 public:
  // `graph`: the program's, whose params gradients are of; null: they are left out.
  PlanMaker(const Localized& local, const Graph* graph, const ProgramInfo& info, const Bindings& given)
      : graph_(graph), info_(info), dims_(local.graph.dims.bind(given).values), local_(local) {}

  PlannedMesh make(const CompileDevice& compile_device) {
    const DeviceProgram program = device_program(local_);
    CompiledDevice compiled = compile_device(local_, program, dims_);
    plan_.code = std::move(compiled.code);
    values_ = std::move(compiled.plan.values);
    values();
    sources();
    connect(program, compiled.plan.planned);
    for (size_t u = 0; u < program.targets.size(); ++u)
      stored_.push_back(program.targets[u].valid() && is_stored_by_launches(local_.graph, local_.graph.updates[u].value));
    for (const NodeId id : compiled.plan.schedule.collectives) collective(id);
    plan_.steps = std::move(compiled.plan.schedule.steps);
    plan_.in_place = local_.stores == DeviceUpdates::in_place;
    roots();
    if (debug_level() >= 1) {
      const std::string problem = verify_mesh_plan(plan_, local_.graph.mesh.stages.over);
      EINC_CHECK(problem.empty(), "the plan of a mesh's device loses a value: {}", problem);
    }
    PlannedMesh planned{std::move(plan_), {}, compiled.plan.kept};
    for (const auto& [node, value] : values_.of_node) planned.value_of.emplace(node, static_cast<uint32_t>(value));
    return planned;
  }

 private:
  void values() {
    for (size_t v = 0; v < values_.value_of.size(); ++v)
      plan_.values.push_back(tensor_of(local_.graph.type(values_.value_of[v].first), dims_, values_.offsets[v]));
    for (const auto& [node, copy] : values_.of_copy) plan_.snapshots.push_back({value_of(NodeId{node}), static_cast<uint32_t>(copy)});
    std::ranges::sort(plan_.snapshots, {}, &ValueCopy::to);
    plan_.bytes = values_.bytes, plan_.lasting = values_.lasting, plan_.kept = values_.kept;
  }
  uint32_t value_of(NodeId id) const { return static_cast<uint32_t>(values_.of_node.at(id.index)); }

  void sources() {
    for (const DeviceValue& declared : local_.declared) {
      const Node& node = local_.graph[declared.node];
      const SourceKind kind = node.op == Op::input ? SourceKind::input : node.op == Op::param ? SourceKind::param : SourceKind::state;
      const std::vector<TensorInfo>& list = sources_of(info_, kind);
      const std::string name = source_name(node);
      const auto known = std::ranges::find(list, name, &TensorInfo::name);
      if (known == list.end()) {
        plan_.taken.push_back(value_of(declared.node));
        continue;
      }
      source_index_[declared.node.index] = static_cast<uint32_t>(plan_.sources.size());
      plan_.sources.push_back({{kind, static_cast<uint32_t>(known - list.begin())}, value_of(declared.node), layout_of(declared)});
    }
    for (size_t m = 0; m < local_.coordinates.size(); ++m)
      if (local_.coordinates[m].valid()) plan_.coordinates.push_back({static_cast<int>(m), value_of(local_.coordinates[m])});
  }

  static std::string source_name(const Node& node) {
    if (node.op == Op::input) return node.as<InputAttr>().name.str();
    return node.op == Op::param ? node.as<ParamAttr>().path.str() : node.as<StateAttr>().path.str();
  }

  // Buffers are sources and outputs; of outputs that the schedule has found to be one value, there is one.
  void connect(const DeviceProgram& program, const PlannedDevice& planned) {
    const Executable& code = plan_.code.compute.program;
    EINC_CHECK(code.launches.size() == planned.launches, "a device has other launches than planned");
    std::unordered_set<uint32_t> known;
    for (size_t i = 0; i < program.values.size(); ++i) {
      const NodeId id = program.values[i];
      EINC_CHECK(code.outputs[i].name == value_name(id), "outputs of a device stand in another order");
      const uint32_t buffer = code.outputs[i].buffer;
      if (known.insert(buffer).second) plan_.code.bound.push_back({buffer, value_of(id), planned.made_by(i)});
    }
    std::unordered_map<std::string, NodeId> declared[3];
    for (const DeviceValue& d : local_.declared)
      declared[role_of(local_.graph[d.node].op)].emplace(source_name(local_.graph[d.node]), d.node);
    for (const NodeId id : local_.coordinates)
      if (id.valid()) declared[static_cast<size_t>(BufferRole::input)].emplace(source_name(local_.graph[id]), id);
    for (uint32_t b = 0; b < code.buffers.size(); ++b)
      if (const ExecutableBuffer& buffer = code.buffers[b]; is_source(buffer.role) && !known.contains(b))
        plan_.code.bound.push_back({b, value_of(declared[static_cast<size_t>(buffer.role)].at(buffer.name))});
  }

  void collective(NodeId id) {
    const Node& node = local_.graph[id];
    plan_.collectives.push_back(to_runtime(node, value_of(node.operands[0]), value_of(id)));
  }

  static size_t role_of(Op op) {
    return static_cast<size_t>(op == Op::input ? BufferRole::input : op == Op::param ? BufferRole::param : BufferRole::state);
  }

  uint32_t result_of(NodeId id) const {
    const auto copy = values_.of_copy.find(id.index);
    return copy == values_.of_copy.end() ? value_of(id) : static_cast<uint32_t>(copy->second);
  }

  void roots() {
    const auto result = [&](const DeviceValue& value) { return MeshResult{result_of(value.node), layout_of(value)}; };
    for (const DeviceValue& output : local_.outputs) plan_.outputs.push_back(result(output));
    for (size_t i = 0; i < local_.updates.size(); ++i) {
      const NodeId target = local_.graph.updates[i].target;
      const bool stored = stored_.size() > i && stored_[i];
      if (const auto source = source_index_.find(target.index); source != source_index_.end())
        plan_.updates.push_back({source->second, stored ? value_of(target) : result_of(local_.updates[i].node)});
    }
    for (size_t i = 0; graph_ && i < local_.gradients.size(); ++i)
      if (local_.gradients[i].node.valid())
        plan_.gradients.emplace_back(source_name((*graph_)[graph_->gradients[i].target]), result(local_.gradients[i]));
    if (local_.loss.node.valid()) plan_.loss = result_of(local_.loss.node);
  }

  const Graph* graph_;
  const ProgramInfo& info_;
  const Bindings dims_;
  const Localized& local_;
  MeshPlan plan_;
  DeviceValues values_;
  std::vector<bool> stored_;                             // by updates of the device's graph: launches store it
  std::unordered_map<uint32_t, uint32_t> source_index_;  // by node of the device's graph
};

}  // namespace

PartLayout layout_of(const DeviceValue& value) {
  PartLayout parts;
  for (const AxisList& list : value.layout.axes) parts.over.emplace_back(list.begin(), list.end());
  parts.zigzag.resize(parts.over.size(), kNoZigzag);
  for (const int axis : value.zigzag.axes) parts.zigzag[static_cast<size_t>(axis)] = value.zigzag.over;
  return parts;
}

Localized device_graph(const Graph& graph, const Bindings& dims) {
  auto made = partition_for_mesh(graph, dims);
  if (const auto* problem = std::get_if<NoPartition>(&made))
    throw Error(ErrorKind::program, fmt::format("`{}` cannot be split over mesh axis `{}`: {}", to_string(graph[problem->node].op),
                                                graph.mesh.axes[static_cast<size_t>(problem->mesh_axis)].name.str(), problem->why));
  return localize(std::get<Partitioned>(made));
}

PlannedMesh plan_device_graph(const Localized& local, const ProgramInfo& info, const Bindings& given, const CompileDevice& compile_device) {
  return PlanMaker(local, nullptr, info, given).make(compile_device);
}

MeshPlan plan_mesh(const Graph& graph, const ProgramInfo& info, const Bindings& given, DeviceUpdates updates,
                   const CompileDevice& compile_device) {
  Localized local = device_graph(graph, given);
  local.stores = updates;
  return PlanMaker(local, &graph, info, given).make(compile_device).plan;
}

MeshPlan moved_values(const Localized& local, const Bindings& dims) {
  MeshPlan plan;
  const auto add = [&](NodeId id) {
    plan.values.push_back(tensor_of(local.graph.type(id), dims, 0));
    return static_cast<uint32_t>(plan.values.size() - 1);
  };
  for (const NodeId id : local.collectives) {
    const Node& node = local.graph[id];
    const uint32_t from = add(node.operands[0]);
    plan.collectives.push_back(to_runtime(node, from, add(id)));
  }
  return plan;
}

bool has_stages(const ProgramGraphs& graphs) {
  return std::ranges::any_of(graphs.parts, [](const std::optional<Graph>& graph) { return graph && graph->mesh.stages.any(); });
}

MeshShape mesh_shape(const ProgramGraphs& graphs) {
  MeshShape mesh;
  for (const std::optional<Graph>& graph : graphs.parts) {
    if (!graph || !mesh.sizes.empty()) continue;
    const Bindings dims = graph->dims.bind(graphs.dims).values;
    for (const MeshAxis& axis : graph->mesh.axes) {
      mesh.names.push_back(axis.name.str());
      mesh.sizes.push_back(axis.size.evaluate_integer(dims).value());
    }
  }
  return mesh;
}

}  // namespace einc
