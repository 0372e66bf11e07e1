// SPDX-License-Identifier: Apache-2.0
// Which stages of a pipeline a process has, in which order it computes them, and what it exchanges with others, on any kind of device.
#pragma once
#include <functional>
#include <vector>

#include "runtime/mesh/mesh_shape.h"
#include "runtime/mesh/pipeline_plan.h"

namespace einc {

// Stages that are in one process, at least in part, as those of all processes are cut.
struct StageBlocks {
  int64_t devices = 1;  // of a stage
  int64_t stages = 1;   // of a block
  int64_t number = 0;   // of this process' block
  int64_t blocks = 1;
  int64_t first() const { return number * stages; }
  int64_t last() const { return first() + stages; }
  // Of a stage, by a process that holds so many.
  int64_t held_devices(int64_t held) const { return std::min(devices, held); }
  // Microbatches of which this process holds what their backwards need, at most.
  int64_t held(int64_t microbatches) const { return std::min(microbatches, blocks - number); }
};
// Throws RuntimeFailure (data) where processes have parts of several stages.
StageBlocks blocks_of(const MeshShape& mesh, const PipelinePlan& pipeline, int64_t processes, int64_t rank);
// The devices of one stage.
MeshShape mesh_of_stage(MeshShape mesh, const PipelinePlan& pipeline);

// What a process' stages take, the memory that parts share apart, and the most that they send in one exchange and get in one.
struct StagedBytes {
  int64_t values = 0, sent = 0, received = 0;
};
StagedBytes staged_bytes(const MeshShape& mesh, const PipelinePlan& pipeline, int64_t processes, int64_t rank);

const DeviceTensor& tensor_of(const PipelinePlan& pipeline, const StageValue& value);

// What a process computes without hearing of others: a microbatch through its stages.
enum class StageDirection : uint8_t { forward, backward };
struct StageUnit {
  StageDirection direction = StageDirection::forward;
  int64_t microbatch = 0;
  bool is_forward() const { return direction == StageDirection::forward; }
};
// Of a step, with so many microbatches on their way at most.
std::vector<StageUnit> stage_units(int64_t microbatches, int64_t ways);

// What moves behind a unit, or behind a round.
struct StageMovement {
  const StageTransfer* transfer = nullptr;
  int64_t microbatch = 0;
};
std::vector<StageMovement> movements_of(const PipelinePlan& pipeline, const StageUnit& unit);
std::vector<StageMovement> movements_behind(const PipelinePlan& pipeline, size_t round);

// Of an exchange, what one process sends another one, or gets from it, in the order in which both have it; by the other's number.
struct StagePiece {
  int64_t process = 0;
  StageValue value;  // here
  int64_t device = 0, microbatch = 0;
  int64_t bytes = 0;
};
// `process_of`: a device of the whole mesh. `own`: this process.
std::vector<StagePiece> pieces_of(const PipelinePlan& pipeline, const StageBlocks& blocks, const std::vector<StageMovement>& list,
                                  bool sends, int64_t own, const std::function<int64_t(int64_t device)>& process_of);

// Copies what a device of a stage, of mesh `stage`, has of a whole input for a microbatch: the examples of one are neighbours in the whole
// batch, and the devices of a stage share them out.
void cut_out(const MeshShape& stage, const MicrobatchInput& input, int64_t device, int64_t microbatch, DType dtype, const std::byte* whole,
             std::byte* to);

}  // namespace einc
