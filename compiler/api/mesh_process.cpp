// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/mesh_process.h"

#include <set>
#include <tuple>

#include "compiler/api/mesh_parts.h"
#include "runtime/cuda/mesh_moves.h"
#include "runtime/mesh/mesh_program.h"

namespace einc {
namespace {

// A collective's blocks are listed by pairs of devices: of more devices than these it is told what it moves at most.
constexpr int64_t kMostListed = 512;

// Of devices that one mesh axis holds together, since others have no part in a collective over it.
int64_t packed_by_gpu(const MeshPlan& plan, const MeshShape& mesh) {
  std::set<std::tuple<CollectiveKind, int, int, int, std::vector<int64_t>, DType>> seen;
  int64_t most = 0;
  for (const MeshCollective& c : plan.collectives) {
    const DeviceTensor& from = plan.values[c.from];
    if (!seen.insert({c.kind, c.mesh_axis, c.gathered, c.divided, from.shape, from.dtype}).second) continue;
    const auto axis = static_cast<size_t>(c.mesh_axis);
    if (mesh.sizes[axis] > kMostListed) {
      most = std::max(most, 2 * from.bytes);
      continue;
    }
    MeshPlan alone;
    alone.values = {from, plan.values[c.to]};
    alone.collectives = {c};
    alone.collectives[0].mesh_axis = 0, alone.collectives[0].from = 0, alone.collectives[0].to = 1;
    most = std::max(most, packed_bytes(alone, {{mesh.names[axis]}, {mesh.sizes[axis]}}, 0, 1));
  }
  return most;
}

}  // namespace

ProcessBytes process_bytes_of(const Graph& graph, const Bindings& given, DeviceTarget target) {
  return [&graph, given, target](const Localized& local, const Bindings& dims, const DeviceProcess& process) {
    ProgramGraphs graphs;
    graphs.dims = given;
    graphs.parts[Part::training] = graph;
    PerPart<MeshPlan> parts;
    parts[Part::training] = moved_values(local, dims);
    if (graph.mesh.stages.any())  // what passes between microbatches and stages is told by `process`
      std::erase_if(parts[Part::training]->collectives, [&](const MeshCollective& c) { return c.mesh_axis == graph.mesh.stages.over; });
    const MeshShape mesh = mesh_shape(graphs);
    if (target == DeviceTarget::cuda) return process.sent + packed_by_gpu(*parts[Part::training], mesh);
    EincTransport others{};  // tells that each device is a process; what only counts bytes calls none of its functions
    others.size = static_cast<int>(mesh.devices());
    const MeshProgram alone(program_info(graphs), mesh, std::move(parts), &others);
    return process.sent + process.received + alone.bytes_of(1, process.first || mesh.devices() == 1 ? 0 : 1);
  };
}

}  // namespace einc
