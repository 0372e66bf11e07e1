// SPDX-License-Identifier: Apache-2.0
// A device's program as machine code.
#include "compiler/api/mesh_native.h"

#include "compiler/api/mesh_parts.h"
#include "compiler/pipeline/cpu_program.h"

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

}  // namespace

std::shared_ptr<const MeshProgram> mesh_program(const ProgramGraphs& graphs, const std::filesystem::path& cache_folder,
                                                const Scheduling& scheduling, const EincTransport* transport) {
  FileCache cache(cache_folder);
  std::vector<NativeCode> code;
  PerPart<MeshPlan> parts;
  const ProgramInfo info = program_info(graphs);
  CpuOptions options;
  options.mode = RunMode::inference;
  options.scheduling = scheduling;
  options.scheduling.memory_limit.reset();  // nothing is made again: a limit is only held against the whole
  const auto compile = [&](const DeviceProgram& program) {
    const auto lowered = lower_graph(program.graph, graphs.dims, options);
    code.push_back(compile_native(lowered->lowered, cache));
    PlannedDevice planned = planned_device(program, *lowered);
    return CompiledDevice{{{std::move(lowered->lowered.program), code.back().functions}}, std::move(planned)};
  };
  for (size_t p = 0; p < kParts; ++p)
    if (const auto& graph = graphs.parts[static_cast<Part>(p)]) parts[static_cast<Part>(p)] = plan_mesh(*graph, info, graphs.dims, compile);
  auto kept = std::make_shared<ProgramGraphs>();
  kept->parts = graphs.parts;
  kept->dims = graphs.dims;
  const auto whole = [kept, cache_folder] { return whole_program(*kept, cache_folder, Scheduling::unfused); };
  return std::make_shared<MeshCompiledHere>(info, mesh_shape(graphs), std::move(parts), transport, whole, std::move(code));
}

}  // namespace einc
