// SPDX-License-Identifier: Apache-2.0
#include "runtime/mesh/stage_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/failure.h"

namespace einc {

StageBlocks blocks_of(const MeshShape& mesh, const PipelinePlan& pipeline, int64_t processes, int64_t rank) {
  const auto stages = static_cast<int64_t>(pipeline.stages.size());
  StageBlocks blocks{mesh.devices() / stages, stages, 0, 1};
  const int64_t held = mesh.devices() / processes;
  if (held % blocks.devices != 0 && blocks.devices % held != 0)
    throw RuntimeFailure(FailureKind::data, fmt::format("{} processes have parts of several of {} stages: start as many as divide the "
                                                        "stages, or a multiple of their number",
                                                        processes, stages));
  blocks.stages = std::max<int64_t>(1, held / blocks.devices);
  blocks.blocks = stages / blocks.stages;
  blocks.number = rank * held / blocks.devices / blocks.stages;
  return blocks;
}

MeshShape mesh_of_stage(MeshShape mesh, const PipelinePlan& pipeline) {
  mesh.sizes[static_cast<size_t>(pipeline.axis)] = 1;
  return mesh;
}

StagedBytes staged_bytes(const MeshShape& mesh, const PipelinePlan& pipeline, int64_t processes, int64_t rank) {
  const StageBlocks blocks = blocks_of(mesh, pipeline, processes, rank);
  const int64_t devices = blocks.held_devices(mesh.devices() / processes), further = blocks.held(pipeline.microbatches) - 1;
  StagedBytes bytes;
  const auto has = [&](int stage) { return stage / blocks.stages == blocks.number; };
  const auto count = [&](const std::vector<StageTransfer>& list) {
    int64_t sent = 0, received = 0;
    for (const StageTransfer& t : list) {
      const int64_t moved = devices * tensor_of(pipeline, t.to).bytes;
      if (has(t.from.stage) && !has(t.to.stage)) sent += moved;
      if (has(t.to.stage) && !has(t.from.stage)) received += moved;
    }
    bytes.sent = std::max(bytes.sent, sent), bytes.received = std::max(bytes.received, received);
  };
  count(pipeline.up), count(pipeline.down);
  for (const std::vector<StageTransfer>& list : pipeline.behind) count(list);
  for (int64_t s = blocks.first(); s < blocks.last(); ++s) {
    const PipelineStage& stage = pipeline.stages[static_cast<size_t>(s)];
    for (const StageRound& round : stage.rounds) bytes.values += devices * round.plan.bytes;
    const MeshPlan& each = stage.rounds[kRoundOfMicrobatches].plan;
    bytes.values += devices * further * (each.kept + stage.kept);
  }
  return bytes;
}

const DeviceTensor& tensor_of(const PipelinePlan& pipeline, const StageValue& value) {
  return pipeline.stages[static_cast<size_t>(value.stage)].rounds[static_cast<size_t>(value.round)].plan.values[value.value];
}

std::vector<StageUnit> stage_units(int64_t microbatches, int64_t ways) {
  std::vector<StageUnit> units;
  for (int64_t forwards = 0, backwards = 0; backwards < microbatches;)
    if (forwards < microbatches && forwards - backwards < ways)
      units.push_back({StageDirection::forward, forwards++});
    else
      units.push_back({StageDirection::backward, backwards++});
  return units;
}

std::vector<StageMovement> movements_of(const PipelinePlan& pipeline, const StageUnit& unit) {
  std::vector<StageMovement> list;
  for (const StageTransfer& t : unit.is_forward() ? pipeline.up : pipeline.down) list.push_back({&t, unit.microbatch});
  return list;
}

std::vector<StageMovement> movements_behind(const PipelinePlan& pipeline, size_t round) {
  std::vector<StageMovement> list;
  for (const StageTransfer& t : pipeline.behind[round]) list.push_back({&t, pipeline.microbatches - 1});
  return list;
}

std::vector<StagePiece> pieces_of(const PipelinePlan& pipeline, const StageBlocks& blocks, const std::vector<StageMovement>& list,
                                  bool sends, int64_t own, const std::function<int64_t(int64_t device)>& process_of) {
  std::vector<StagePiece> pieces;
  for (const StageMovement& m : list)
    for (int64_t device = 0; device < blocks.devices; ++device) {
      const int64_t sender = process_of(m.transfer->from.stage * blocks.devices + device),
                    receiver = process_of(m.transfer->to.stage * blocks.devices + device);
      if (sender == receiver || (sends ? sender : receiver) != own) continue;
      pieces.push_back({sends ? receiver : sender, sends ? m.transfer->from : m.transfer->to, device, m.microbatch,
                        tensor_of(pipeline, m.transfer->to).bytes});
    }
  std::ranges::stable_sort(pieces, {}, &StagePiece::process);
  return pieces;
}

void cut_out(const MeshShape& stage, const MicrobatchInput& input, int64_t device, int64_t microbatch, DType dtype, const std::byte* whole,
             std::byte* to) {
  PartBox box = part_of(stage, input.layout, input.shape, device);
  for (size_t axis = 0; axis < input.shape.size(); ++axis)
    if (input.shape[axis] != input.of_all[axis]) box.begin[axis] += microbatch * input.shape[axis];
  copy_box(BoxCopy::out, input.of_all, box, bytes_of(dtype), const_cast<std::byte*>(whole), to);
}

}  // namespace einc
