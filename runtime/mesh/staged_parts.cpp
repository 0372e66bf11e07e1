// SPDX-License-Identifier: Apache-2.0
// What goes to other processes behind a unit, and what the next unit wants of them, is one exchange: two that send to one another do not
// wait for one another's receipt. Each process posts its exchanges in the order of its units, and that order lets all go on, since only
// neighbours exchange anything for a microbatch (partition/cut_stages; tests/agree/mesh carries it out for many numbers of stages).
#include "runtime/mesh/staged_parts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/mesh/processes.h"

namespace einc {

StagedParts::StagedParts(const MeshPlan& plan, MeshEngine& engine)
    : whole_(plan),
      pipeline_(*plan.pipeline),
      engine_(engine),
      blocks_(blocks_of(engine.mesh(), pipeline_, engine.mesh().devices() / engine.held(), engine.first() / engine.held())),
      ways_(blocks_.held(pipeline_.microbatches)),
      lent_(plan.values.size(), nullptr) {}

bool StagedParts::lend(uint32_t value, const std::byte* whole) {
  for (const PipelineStage& s : pipeline_.stages)
    for (const MicrobatchInput& input : s.inputs)
      if (input.whole == value) return lent_[value] = whole, true;
  return false;
}

void StagedParts::carry_out_rounds() {
  for (size_t round = 0; round < pipeline_.behind.size(); ++round) {
    if (round == kRoundOfMicrobatches)
      carry_out_microbatches();
    else
      run_round(static_cast<int>(round));
    const std::vector<StageMovement> list = movements_behind(pipeline_, round);
    for (const StageMovement& m : list) move(m);
    exchange_with_others(list, list);
    wait_for_exchange();
  }
}

size_t StagedParts::agreement_of(const MeshPlan& plan) {
  return static_cast<size_t>(std::ranges::find(plan.steps, DeviceAct::agree, &DeviceStep::act) - plan.steps.begin());
}

// The loss is no number of the last round, so nothing there looks at it.
NonFinite StagedParts::agree() {
  const bool lost = whole_.loss >= 0 && !std::isfinite(loss_);
  return engine_.agree(lost ? NonFinite::loss : fault_here());
}

void StagedParts::carry_out_microbatches() {
  begin_microbatches();
  const std::vector<StageUnit> units = stage_units(pipeline_.microbatches, ways_);
  exchange_with_others({}, movements_of(pipeline_, units.front()));
  for (size_t u = 0; u < units.size(); ++u) {
    if (comes_from_others(units[u])) wait_for_exchange();
    carry_out(units[u]);
    exchange_with_others(movements_of(pipeline_, units[u]),
                         u + 1 < units.size() ? movements_of(pipeline_, units[u + 1]) : std::vector<StageMovement>{});
  }
  wait_for_exchange();
  end_microbatches();
}

void StagedParts::carry_out(const StageUnit& unit) {
  const auto last = static_cast<int>(blocks_.last()) - 1, first = static_cast<int>(blocks_.first());
  for (int i = 0; i < static_cast<int>(blocks_.stages); ++i) {
    const int stage = unit.is_forward() ? first + i : last - i;
    run_segment(stage, unit);
    for (const StageMovement& m : movements_of(pipeline_, unit))
      if (m.transfer->from.stage == stage) move(m);
  }
}

void StagedParts::move(const StageMovement& m) {
  for (int64_t device = 0; device < blocks_.devices; ++device)
    if (move_here(m, device)) sent_.push_back({CollectiveKind::shift, pipeline_.axis, tensor(m.transfer->to).bytes});
}

bool StagedParts::comes_from_others(const StageUnit& unit) const {
  return std::ranges::any_of(movements_of(pipeline_, unit),
                             [&](const StageMovement& m) { return has_stage(m.transfer->to.stage) && !has_stage(m.transfer->from.stage); });
}

void StagedParts::exchange_with_others(const std::vector<StageMovement>& out, const std::vector<StageMovement>& in) {
  const EincTransport* transport = engine_.transport();
  if (transport == nullptr || transport->size == 1) return;
  const auto process_of = [&](int64_t device) { return engine_.process_of(device); };
  const std::vector<StagePiece> sent = pieces_of(pipeline_, blocks_, out, true, transport->rank, process_of),
                                received = pieces_of(pipeline_, blocks_, in, false, transport->rank, process_of);
  if (sent.empty() && received.empty()) return;
  wait_for_exchange();
  for (const StagePiece& p : sent) sent_.push_back({CollectiveKind::shift, pipeline_.axis, p.bytes});
  exchange(sent, received);
}

// All processes tell it, and the one that has it knows.
void StagedParts::share_loss() {
  loss_ /= static_cast<double>(pipeline_.microbatches);
  const EincTransport* transport = engine_.transport();
  if (whole_.loss < 0 || transport == nullptr || transport->size == 1) return;
  const std::vector<uint64_t> all = numbers_of_all(*transport, std::bit_cast<uint64_t>(loss_));
  loss_ = std::bit_cast<double>(all[static_cast<size_t>(engine_.process_of(pipeline_.loss.stage * blocks_.devices))]);
}

const std::byte* StagedParts::read_loss(std::vector<std::byte>& room) const {
  room.resize(sizeof loss_);
  std::memcpy(room.data(), &loss_, sizeof loss_);
  return room.data();
}

}  // namespace einc
