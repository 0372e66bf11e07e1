// SPDX-License-Identifier: Apache-2.0
// A device's program as machine code.
#include "compiler/api/mesh_native.h"

#include "compiler/api/mesh_limit.h"
#include "compiler/api/mesh_parts.h"
#include "compiler/pipeline/cpu_program.h"
#include "runtime/mesh/host_devices.h"

namespace einc {
namespace {

// Keeps the code that its functions lie in.
class MeshCompiledHere : public MeshProgram {
 public:
  MeshCompiledHere(ProgramInfo program, MeshShape mesh, PerPart<MeshPlan> parts, const EincTransport* transport, Whole whole,
                   std::vector<NativeCode> code)
      : MeshProgram(std::move(program), std::move(mesh), std::move(parts), transport, std::move(whole)), code_(std::move(code)) {}

 private:
  std::vector<NativeCode> code_;
};

// Parts as they are planned; machine code is made of the last plan of each.
struct NativeParts {
  const ProgramGraphs& graphs;
  const ProgramInfo& info;
  const int threads;
  PerPart<MeshPlan> plans{};
  PerPart<std::unique_ptr<LoweredGraph>> lowered{};

  PartBytes plan(Part part, CpuOptions options, const CountPart& count) {
    plans[part] =
        plan_mesh(*graphs.parts[part], info, graphs.dims, [&](const Localized& local, const DeviceProgram& program, const Bindings& dims) {
          const CountDevice bytes = [&](const FormedView& formed, const BesidePlan& besides) {
            return count(
                {plan_device(local, program, dims, formed, {}).values.bytes, formed.plan.own_bytes + besides.bytes, besides.shared});
          };
          if (options.scheduling.memory_limit) options.scheduling.memory_limit->of_device = bytes;
          lowered[part] = lower_graph(program.graph, graphs.dims, options);
          return CompiledDevice{{{(*lowered[part])->lowered.program, {}}}, plan_device(local, program, dims, (*lowered[part])->view(), {})};
        });
    return {plans[part]->bytes, working_bytes(*plans[part], threads), 0};
  }
};

}  // namespace

std::shared_ptr<const MeshProgram> mesh_program(const ProgramGraphs& graphs, const std::filesystem::path& cache_folder,
                                                const Scheduling& scheduling, const EincTransport* transport) {
  const ProgramInfo info = program_info(graphs);
  const std::optional<MemoryLimit>& limit = scheduling.memory_limit;
  CpuOptions options;
  options.mode = RunMode::inference;
  options.scheduling = scheduling;
  options.scheduling.memory_limit.reset();
  NativeParts planner{graphs, info, limit ? limit->threads : 1};
  PerPart<PartBytes> bytes;
  for (size_t p = 0; p < kParts; ++p)
    if (const Part part = static_cast<Part>(p); graphs.parts[part]) bytes[part] = planner.plan(part, options, {});
  const MeshShape mesh = mesh_shape(graphs);
  if (limit) {
    const MeshProgram as_is(info, mesh, planner.plans, transport);
    plan_within(*limit, bytes, as_is.most_planned_bytes(limit->threads), as_is.held(),
                [&](Part part, const MemoryLimit& own, const CountPart& count) {
                  CpuOptions limited = options;
                  limited.scheduling.memory_limit = own;
                  return planner.plan(part, limited, count);
                });
  }
  FileCache cache(cache_folder);
  std::vector<NativeCode> code;
  for (size_t p = 0; p < kParts; ++p)
    if (const Part part = static_cast<Part>(p); planner.lowered[part]) {
      code.push_back(compile_native((*planner.lowered[part])->lowered, cache));
      planner.plans[part]->code.compute.functions = code.back().functions;
    }
  auto kept = std::make_shared<ProgramGraphs>();
  kept->parts = graphs.parts;
  kept->dims = graphs.dims;
  const auto whole = [kept, cache_folder] { return whole_program(*kept, cache_folder, Scheduling::unfused); };
  return std::make_shared<MeshCompiledHere>(info, mesh, std::move(planner.plans), transport, whole, std::move(code));
}

}  // namespace einc
