// SPDX-License-Identifier: Apache-2.0
// What a process takes: of each of its devices the values and the memory that its stages run in, the whole inputs, and the whole params and
// states where they are put together: in the first process all of them, for a checkpoint, in others one after another.
#include "runtime/mesh/mesh_program.h"

#include <algorithm>

#include "runtime/mesh/mesh_runner.h"

namespace einc {

int64_t working_bytes(const MeshPlan& plan, int threads) {
  int64_t bytes = 0;
  for (const MeshStage& stage : plan.stages) bytes = std::max(bytes, memory_of(stage.compute.program, Sources::bound, threads));
  return bytes;
}

MeshProgram::MeshProgram(ProgramInfo program, MeshShape mesh, PerPart<MeshPlan> parts, const EincTransport* transport, Whole whole)
    : ProgramRep(std::move(program)), mesh_(std::move(mesh)), parts_(std::move(parts)), transport_(transport), whole_(std::move(whole)) {}

std::unique_ptr<Runner> MeshProgram::start(std::shared_ptr<ThreadPool> pool, int) const {
  return std::make_unique<MeshRunner>(*this, std::move(pool));
}

int64_t MeshProgram::whole_bytes() const {
  if (transport_ == nullptr || transport_->rank == 0) return source_bytes(info);
  int64_t inputs = 0, largest = 0;
  for (const TensorInfo& input : info.inputs)
    if (__builtin_add_overflow(inputs, input.bytes(), &inputs)) return INT64_MAX;
  for (const std::vector<TensorInfo>* list : {&info.params, &info.states})
    for (const TensorInfo& tensor : *list) largest = std::max(largest, tensor.bytes());
  return __builtin_add_overflow(inputs, largest, &inputs) ? INT64_MAX : inputs;
}

int64_t MeshProgram::planned_bytes(int threads) const {
  const int64_t held = mesh_.devices() / (transport_ == nullptr ? 1 : transport_->size);
  int64_t bytes = whole_bytes(), working = 0;
  for (const std::optional<MeshPlan>& plan : parts_) {
    if (!plan) continue;
    if (__builtin_add_overflow(bytes, DeviceMemory::bytes_of_all(*plan, held), &bytes)) return INT64_MAX;
    working = std::max(working, working_bytes(*plan, threads));
  }
  if (__builtin_mul_overflow(working, held, &working)) return INT64_MAX;
  return __builtin_add_overflow(bytes, working, &bytes) ? INT64_MAX : bytes;
}

std::vector<SentBytes> bytes_sent(const Runner& runner, Part part) { return dynamic_cast<const MeshRunner&>(runner).sent(part); }
const MeshTimes& mesh_times(const Runner& runner, Part part) { return dynamic_cast<const MeshRunner&>(runner).times(part); }

}  // namespace einc
