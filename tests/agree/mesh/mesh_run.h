// SPDX-License-Identifier: Apache-2.0
// A graph with a mesh, carried out by its devices in this process.
#pragma once
#include <functional>
#include <optional>

#include "compiler/api/mesh_cuda.h"
#include "compiler/api/mesh_native.h"
#include "tests/support/agree.h"
#include "tests/support/mesh_examples.h"
#include "tests/support/thread_transport.h"

namespace einc {

// The graph as the part that options run. Throws Error for what has no rule.
std::shared_ptr<const MeshProgram> compile_for_mesh(const Graph& graph, const Bindings& dims, RunMode mode);
std::shared_ptr<const MeshProgram> compile_as(const Scheduling& scheduling, const Graph& graph, const Bindings& dims, RunMode mode);
// For the GPU of the tests.
std::shared_ptr<const CudaMeshProgram> compile_for_gpus(const Graph& graph, const Bindings& dims, RunMode mode);
// The same where a library multiplies all that it can.
std::shared_ptr<const CudaMeshProgram> compile_with_library(const Graph& graph, const Bindings& dims, RunMode mode);

struct MeshRun {
  NonFinite fault = NonFinite::nothing;  // then there are no values
  CpuRun values;
  std::vector<SentBytes> sent;
};
// A runner with memory for its sources, which holds what they are given.
struct BoundRun {
  std::vector<HostArray> memory[3];  // by kind
  std::unique_ptr<Runner> runner;
};
BoundRun start_on_mesh(const MeshProgram& program, const ProgramData& data, int threads);

// What each of so many processes, which have the devices in equal blocks, makes of its own program.
template <class Make>
auto in_processes(const MeshProgram& program, int processes, Make make) {
  ThreadTransport transport(processes);
  std::vector<std::optional<decltype(make(program))>> made(static_cast<size_t>(processes));
  transport.run([&](const EincTransport& end) {
    made[static_cast<size_t>(end.rank)] = make(MeshProgram(program.info, program.mesh(), program.parts(), &end));
  });
  std::vector<decltype(make(program))> all;
  for (auto& each : made) all.push_back(std::move(each.value()));
  return all;
}

// How a step on faulty data ends, and whether one on good data leaves behind it what it leaves without it, though only what was faulty is
// written again: what lies on devices is seen by nothing else.
struct Ended {
  NonFinite fault = NonFinite::nothing;
  bool nothing_stored = true;
};
// `times`: in one runner; of those the first that is not as the one before.
Ended ended(const MeshProgram& program, const ProgramData& faulty, const ProgramData& good, int times = 1);
// Of a plan's updates, those that lie elsewhere than the old values.
size_t in_places_of_their_own(const MeshPlan& plan);

MeshRun run_on_mesh(const MeshProgram& program, const TensorMap& inputs, const TensorMap& params, const TensorMap& states,
                    const InterpretOptions& options, int threads);

// "all_reduce 0 1024": kind, mesh axis and the bytes that all devices send, one a line, sorted: as the partition foretells them, and as the
// engine counted them.
std::string foretold_bytes(const Graph& graph, const Bindings& dims);
std::string counted_bytes(const std::vector<SentBytes>& sent);

// The most bytes that results of collectives of a kind hold at once, each from its start to the last launch or collective that reads it.
int64_t most_held(const MeshPlan& plan, CollectiveKind kind);

// "" or what is wrong with the graph of one device: it is well formed, and what is printed of it reads back.
std::string device_graph_problem(const Graph& graph, const Bindings& dims);

InterpretResult interpreted(const Graph& graph, const ProgramData& data);
// Of the params those that are trained.
InterpretResult as_result(CpuRun run, const InterpretResult& wanted);
// "" or how a run of the devices differs from the interpreter's of the whole program.
std::string run_difference(const MeshProgram& program, const ProgramData& data, const InterpretResult& wanted, double tolerance);

using CompileForMesh = std::function<std::shared_ptr<const MeshProgram>(const Graph& graph, const Bindings& dims, RunMode mode)>;
// "" or what is wrong with a random program on a random mesh: its values, or the bytes that its devices send.
std::string wrong_run(const std::string& text, uint64_t seed, const CompileForMesh& compile);

}  // namespace einc
