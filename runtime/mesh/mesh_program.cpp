// SPDX-License-Identifier: Apache-2.0
// What a process takes: of each of its devices the values and the memory that its launches work in, the whole inputs, and the whole params
// and states where they are put together: in the first process all of them, for a checkpoint, in others one after another; and what is on
// its way between processes.
#include "runtime/mesh/mesh_program.h"

#include <algorithm>

#include "runtime/mesh/host_devices.h"
#include "runtime/mesh/mesh_runner.h"
#include "runtime/mesh/staged_devices.h"

namespace einc {

int64_t working_bytes(const MeshPlan& plan, int threads) { return memory_of(plan.code.compute.program, Sources::bound, threads); }

MeshProgram::MeshProgram(ProgramInfo program, MeshShape mesh, PerPart<MeshPlan> parts, const EincTransport* transport, Whole whole)
    : ProgramRep(std::move(program)), mesh_(std::move(mesh)), parts_(std::move(parts)), transport_(transport), whole_(std::move(whole)) {}

std::unique_ptr<Runner> MeshProgram::start(std::shared_ptr<ThreadPool> pool, int) const {
  return std::make_unique<MeshRunner>(*this, std::move(pool));
}

PerPart<std::unique_ptr<PartDevices>> MeshProgram::devices(MeshEngine& engine, LentPool& lent, std::shared_ptr<ThreadPool> pool) const {
  std::vector<int64_t> working;
  for (int64_t device = engine.first(); device < engine.last(); ++device) working.push_back(working_of(device, pool->size()));
  const auto machine = std::make_shared<HostMachine>(engine, lent, std::move(pool), working);
  PerPart<std::unique_ptr<PartDevices>> made;
  for (size_t p = 0; p < kParts; ++p)
    if (const auto& plan = parts_[static_cast<Part>(p)]) {
      if (plan->pipeline)
        made[static_cast<Part>(p)] = std::make_unique<StagedDevices>(*plan, machine);
      else
        made[static_cast<Part>(p)] = std::make_unique<HostDevices>(*plan, machine);
    }
  return made;
}

// What launches of a device work in, in one part or another.
int64_t MeshProgram::working_of(int64_t device, int threads) const {
  int64_t bytes = 0;
  for (const std::optional<MeshPlan>& plan : parts_) {
    if (!plan) continue;
    const PipelinePlan* pipeline = plan->pipeline.get();
    bytes = std::max(
        bytes, pipeline ? staged_working_bytes(pipeline->stages[static_cast<size_t>(mesh_.coordinate(device, pipeline->axis))], threads)
                        : working_bytes(*plan, threads));
  }
  return bytes;
}

int64_t MeshProgram::whole_bytes(bool first) const {
  if (first) return source_bytes(info);
  int64_t inputs = 0, largest = 0;
  for (const TensorInfo& input : info.inputs)
    if (__builtin_add_overflow(inputs, input.bytes(), &inputs)) return INT64_MAX;
  for (const std::vector<TensorInfo>* list : {&info.params, &info.states})
    for (const TensorInfo& tensor : *list) largest = std::max(largest, tensor.bytes());
  return __builtin_add_overflow(inputs, largest, &inputs) ? INT64_MAX : inputs;
}

// What the engine packs, sends and receives at once: it keeps room for the most. Sums of int64_t, saturated.
int64_t MeshProgram::packed_bytes(int64_t rank) const {
  int64_t most = 0;
  const auto count = [&](int64_t bytes, int64_t times) {
    if (__builtin_mul_overflow(bytes, times, &bytes)) bytes = INT64_MAX;
    most = std::max(most, bytes);
  };
  const bool alone = transport_ == nullptr || transport_->size == 1;
  const auto count_collectives = [&](const MeshPlan& plan, int64_t devices, int stages_axis) {
    for (const MeshCollective& c : plan.collectives) {
      if (c.mesh_axis == stages_axis) continue;
      const DeviceTensor& from = plan.values[c.from];
      const int64_t others = mesh_.sizes[static_cast<size_t>(c.mesh_axis)] - 1;
      const bool packs = (c.kind == CollectiveKind::reduce_scatter || c.kind == CollectiveKind::all_to_all) && c.divided > 0;
      // To each other device of the group, or a block to each.
      const int64_t each = alone ? 0 : c.kind == CollectiveKind::all_gather ? 2 * others : 2;
      count(from.bytes, devices * (each + (packs ? 1 : 0)));
    }
  };
  for (const std::optional<MeshPlan>& plan : parts_) {
    if (!plan) continue;
    count_collectives(*plan, held(), kNoMeshAxis);
    if (!plan->pipeline) continue;
    const StageBlocks blocks = blocks_of(mesh_, *plan->pipeline, mesh_.devices() / held(), rank);
    for (int64_t s = blocks.first(); s < blocks.last(); ++s)
      for (const StageRound& round : plan->pipeline->stages[static_cast<size_t>(s)].rounds)
        count_collectives(round.plan, blocks.held_devices(held()), plan->pipeline->axis);
  }
  for (const std::vector<TensorInfo>* list : {&info.params, &info.states})
    for (const TensorInfo& tensor : *list) count(tensor.bytes(), alone ? 0 : 2);  // put together for a checkpoint
  return most;
}

int64_t MeshProgram::planned_bytes(int threads) const { return bytes_of(threads, transport_ == nullptr ? 0 : transport_->rank); }

int64_t MeshProgram::bytes_of(int threads, int64_t rank) const {
  const int64_t held = this->held();
  int64_t bytes = whole_bytes(rank == 0);
  const auto add = [&](int64_t more) {
    if (__builtin_add_overflow(bytes, more, &bytes)) bytes = INT64_MAX;
  };
  const auto staged = [&](const PipelinePlan& pipeline) {
    const StagedBytes all = staged_bytes(mesh_, pipeline, mesh_.devices() / held, rank);
    return all.values + all.sent + all.received;
  };
  for (const std::optional<MeshPlan>& plan : parts_)
    if (plan) add(plan->pipeline ? staged(*plan->pipeline) : DeviceMemory::bytes_of_all(*plan, held));
  add(packed_bytes(rank));
  for (int64_t device = rank * held; device < (rank + 1) * held; ++device) add(working_of(device, threads));
  return bytes;
}

std::vector<SentBytes> bytes_sent(const Runner& runner, Part part) { return dynamic_cast<const MeshRunner&>(runner).devices(part).sent(); }
const MeshTimes& mesh_times(const Runner& runner, Part part) { return dynamic_cast<const MeshRunner&>(runner).devices(part).times(); }

}  // namespace einc
