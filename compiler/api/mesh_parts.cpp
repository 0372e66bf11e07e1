// SPDX-License-Identifier: Apache-2.0
// Launches and collectives meet in values: numbers of MeshPlan::values, by node of the device's graph. A source that is itself a result has
// a copy taken before the first step, since an update changes it before the result is asked for.
#include "compiler/api/mesh_parts.h"

#include <fmt/format.h>

#include <unordered_map>

#include "compiler/api/mesh_memory.h"
#include "compiler/api/verify_mesh.h"
#include "compiler/context/partition_for_mesh.h"
#include "compiler/partition/localize.h"
#include "runtime/base/check.h"
#include "runtime/base/debug.h"

namespace einc {
namespace {

PartLayout to_runtime(const Layout& layout) {
  PartLayout parts;
  for (const AxisList& list : layout.axes) parts.over.emplace_back(list.begin(), list.end());
  return parts;
}

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

Localized device_graph(const Graph& graph, const Bindings& dims) {
  auto made = partition_for_mesh(graph, dims);
  if (const auto* problem = std::get_if<NoPartition>(&made))
    throw Error(ErrorKind::program, fmt::format("`{}` cannot be split over mesh axis `{}`: {}", to_string(graph[problem->node].op),
                                                graph.mesh.axes[static_cast<size_t>(problem->mesh_axis)].name.str(), problem->why));
  const Partitioned& partitioned = std::get<Partitioned>(made);
  auto local = localize(partitioned);
  if (const auto* problem = std::get_if<NotLocal>(&local))
    throw Error(ErrorKind::program, fmt::format("`{}` cannot be carried out by the devices of a mesh: {}",
                                                to_string(partitioned.graph[problem->node].op), problem->why));
  return std::move(std::get<Localized>(local));
}

class PlanMaker {
 public:
  PlanMaker(const Graph& graph, const ProgramInfo& info, const Bindings& given)
      : graph_(graph), info_(info), given_(given), dims_(graph.dims.bind(given).values), local_(device_graph(graph, given)) {}

  MeshPlan make(const CompileDevice& compile_device) {
    sources();
    const DeviceProgram program = device_program(local_.graph, results_of(local_));
    CompiledDevice compiled = compile_device(program);
    plan_.code = std::move(compiled.code);
    connect(program, compiled.planned);
    const DeviceSchedule schedule = schedule_device(local_.graph, program, compiled.planned);
    for (const NodeId id : schedule.collectives) collective(id);
    plan_.steps = schedule.steps;
    roots();
    place_values(plan_);
    if (debug_level() >= 1) {
      const std::string problem = verify_mesh_plan(plan_);
      EINC_CHECK(problem.empty(), "the plan of a mesh's device loses a value: {}", problem);
    }
    return std::move(plan_);
  }

 private:
  // The value that a node of the device's graph is, made when first asked for.
  uint32_t value_of(NodeId id) {
    const auto [at, is_new] = values_.try_emplace(id.index, static_cast<uint32_t>(plan_.values.size()));
    if (is_new) {
      const Type& type = local_.graph.type(id);
      DeviceTensor value{type.dtype == DType::real ? DType::f32 : type.dtype, {}, 0};
      for (const Axis& axis : type.axes) value.shape.push_back(axis.size.evaluate_integer(dims_).value());
      value.bytes = TensorInfo{"", value.dtype, {}, value.shape}.bytes();
      plan_.values.push_back(std::move(value));
    }
    return at->second;
  }

  void sources() {
    for (const DeviceValue& declared : local_.declared) {
      const Node& node = local_.graph[declared.node];
      const SourceKind kind = node.op == Op::input ? SourceKind::input : node.op == Op::param ? SourceKind::param : SourceKind::state;
      const std::vector<TensorInfo>& list = sources_of(info_, kind);
      const std::string name = source_name(node);
      for (uint32_t i = 0; i < list.size(); ++i)
        if (list[i].name == name) {
          source_index_[declared.node.index] = static_cast<uint32_t>(plan_.sources.size());
          plan_.sources.push_back({{kind, i}, value_of(declared.node), to_runtime(declared.layout)});
        }
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
    std::unordered_map<uint32_t, uint32_t> known;  // values, by buffer
    for (size_t i = 0; i < program.values.size(); ++i) {
      const NodeId id = program.values[i];
      EINC_CHECK(code.outputs[i].name == value_name(id), "outputs of a device stand in another order");
      const uint32_t buffer = code.outputs[i].buffer;
      if (const auto at = known.find(buffer); at != known.end()) {
        values_.emplace(id.index, at->second);
        continue;
      }
      known.emplace(buffer, value_of(id));
      plan_.code.bound.push_back({buffer, value_of(id), planned.made_by(i)});
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
    if (const auto* a = std::get_if<ShiftAttr>(&node.attr)) {
      plan_.collectives.push_back({CollectiveKind::shift, a->mesh, ReduceKind::sum, 0, 0, value_of(node.operands[0]), value_of(id), a->by});
      return;
    }
    const CollectiveAttr& a = node.as<CollectiveAttr>();
    plan_.collectives.push_back(
        {kind_of_collective(node.op), a.mesh, to_runtime(a.fn), a.gathered, a.divided, value_of(node.operands[0]), value_of(id)});
  }

  static size_t role_of(Op op) {
    return static_cast<size_t>(op == Op::input ? BufferRole::input : op == Op::param ? BufferRole::param : BufferRole::state);
  }

  uint32_t result_of(NodeId id) {
    const uint32_t value = value_of(id);
    if (!source_index_.contains(id.index)) return value;
    const auto [at, is_new] = snapshots_.try_emplace(value, static_cast<uint32_t>(plan_.values.size()));
    if (is_new) {
      plan_.values.push_back(DeviceTensor(plan_.values[value]));
      plan_.snapshots.push_back({value, at->second});
    }
    return at->second;
  }

  void roots() {
    const auto result = [&](const DeviceValue& value) { return MeshResult{result_of(value.node), to_runtime(value.layout)}; };
    for (const DeviceValue& output : local_.outputs) plan_.outputs.push_back(result(output));
    for (size_t i = 0; i < local_.updates.size(); ++i) {
      const NodeId target = local_.graph.updates[i].target;
      if (const auto source = source_index_.find(target.index); source != source_index_.end())
        plan_.updates.push_back({source->second, result_of(local_.updates[i].node)});
    }
    for (size_t i = 0; i < local_.gradients.size(); ++i)
      if (local_.gradients[i].node.valid())
        plan_.gradients.emplace_back(source_name(graph_[graph_.gradients[i].target]), result(local_.gradients[i]));
    if (local_.loss.node.valid()) plan_.loss = result_of(local_.loss.node);
  }

  const Graph& graph_;
  const ProgramInfo& info_;
  const Bindings& given_;
  const Bindings dims_;
  const Localized local_;
  MeshPlan plan_;
  std::unordered_map<uint32_t, uint32_t> values_, source_index_;  // by node of the device's graph
  std::unordered_map<uint32_t, uint32_t> snapshots_;              // by value of a source
};

}  // namespace

MeshPlan plan_mesh(const Graph& graph, const ProgramInfo& info, const Bindings& given, const CompileDevice& compile_device) {
  return PlanMaker(graph, info, given).make(compile_device);
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
