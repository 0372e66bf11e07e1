// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/mesh_process.h"

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "compiler/api/mesh_parts.h"
#include "runtime/cuda/mesh_moves.h"
#include "runtime/mesh/mesh_program.h"

namespace einc {
namespace {

// Of devices that one mesh axis holds together, since others have no part in a collective over it.
int64_t packed_alone(const MeshPlan& plan, const MeshCollective& c, const MeshShape& mesh) {
  const auto axis = static_cast<size_t>(c.mesh_axis);
  MeshPlan alone;
  alone.values = {plan.values[c.from], plan.values[c.to]};
  alone.collectives = {c};
  alone.collectives[0].mesh_axis = 0, alone.collectives[0].from = 0, alone.collectives[0].to = 1;
  return packed_bytes(alone, {{mesh.names[axis]}, {mesh.sizes[axis]}}, 0, 1);
}

// By what tells collectives apart: stages and layers have many that are alike.
using PackedBytes = std::map<std::tuple<CollectiveKind, int, int, int, std::vector<int64_t>, DType>, int64_t>;

int64_t packed_by_gpu(const MeshPlan& plan, const MeshShape& mesh, PackedBytes& known) {
  int64_t most = 0;
  for (const MeshCollective& c : plan.collectives) {
    const DeviceTensor& from = plan.values[c.from];
    const auto [at, is_new] = known.try_emplace({c.kind, c.mesh_axis, c.gathered, c.divided, from.shape, from.dtype});
    if (is_new) at->second = packed_alone(plan, c, mesh);
    most = std::max(most, at->second);
  }
  return most;
}

}  // namespace

ProcessBytes process_bytes_of(const Graph& graph, const Bindings& given, DeviceTarget target) {
  // Stages ask once each: what all of them share is worked out for the first.
  struct Shared {
    std::once_flag once;
    MeshShape mesh;
    ProgramInfo info;
    std::mutex mutex;
    PackedBytes packed;
  };
  return [&graph, given, target, shared = std::make_shared<Shared>()](const Localized& local, const Bindings& dims,
                                                                      const DeviceProcess& process) {
    std::call_once(shared->once, [&] {
      ProgramGraphs graphs;
      graphs.dims = given;
      graphs.parts[Part::training] = graph;
      shared->mesh = mesh_shape(graphs), shared->info = program_info(graphs);
    });
    const MeshShape& mesh = shared->mesh;
    PerPart<MeshPlan> parts;
    parts[Part::training] = moved_values(local, dims);
    if (graph.mesh.stages.any())  // what passes between microbatches and stages is told by `process`
      std::erase_if(parts[Part::training]->collectives, [&](const MeshCollective& c) { return c.mesh_axis == graph.mesh.stages.over; });
    if (target == DeviceTarget::cuda) {
      const std::lock_guard lock(shared->mutex);
      return process.sent + packed_by_gpu(*parts[Part::training], mesh, shared->packed);
    }
    EincTransport others{};  // tells that each device is a process; what only counts bytes calls none of its functions
    others.size = static_cast<int>(mesh.devices());
    const MeshProgram alone(shared->info, mesh, std::move(parts), &others);
    return process.sent + process.received + alone.bytes_of(1, process.first || mesh.devices() == 1 ? 0 : 1);
  };
}

}  // namespace einc
