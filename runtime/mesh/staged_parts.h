// SPDX-License-Identifier: Apache-2.0
// Stages of a pipeline on devices of any kind. The stages of a process are one block of neighbours: a forward goes through all of them, and
// so does a backward. Blocks take turns as stages do (one forward, one backward; Narayanan et al. 2021, section 2.2), so that each process
// computes one microbatch while others compute other ones. Which process has which stages changes no bits: sums over microbatches are taken
// in their order.
#pragma once
#include "runtime/mesh/engine.h"
#include "runtime/mesh/part_devices.h"
#include "runtime/mesh/stage_order.h"

namespace einc {

class StagedParts : public PartDevices {
 public:
  bool lend(uint32_t value, const std::byte* whole) override;
  int64_t failing_device() const override { return failing_; }

 protected:
  StagedParts(const MeshPlan& plan, MeshEngine& engine);

  size_t slot_of(int64_t microbatch) const { return static_cast<size_t>(microbatch % ways_); }
  bool has_stage(int number) const { return number >= blocks_.first() && number < blocks_.last(); }
  const DeviceTensor& tensor(const StageValue& value) const { return tensor_of(pipeline_, value); }
  // Of all stages, that of this process' device `d`.
  int64_t of_stage(int64_t d) const { return (engine_.first() + d) % blocks_.devices; }
  int64_t last_microbatch() const { return pipeline_.microbatches - 1; }
  StagedBytes own_bytes() const {
    return staged_bytes(engine_.mesh(), pipeline_, engine_.mesh().devices() / engine_.held(), engine_.first() / engine_.held());
  }
  // All rounds of a step, and what goes between stages meanwhile. In place: the last one up to the agreement of all stages.
  void carry_out_rounds();
  int last_round() const { return static_cast<int>(pipeline_.behind.size()) - 1; }
  // Of steps of the last round, where its devices agree before they store; the end: they do not. Others agree nowhere.
  static size_t agreement_of(const MeshPlan& plan);
  NonFinite agree();  // when the loss is shared
  // Of loss_ as a sum over microbatches, here or in another process: its mean, in all.
  void share_loss();
  const std::byte* read_loss(std::vector<std::byte>& room) const;

  virtual void run_round(int round) = 0;  // but that of the microbatches; of one in place up to the agreement
  virtual NonFinite fault_here() = 0;     // of what the last round's stages have looked at
  virtual void begin_microbatches() = 0;  // snapshots are taken, sums are 0
  virtual void end_microbatches() = 0;    // sums become means, as with --accumulate
  virtual void run_segment(int stage, const StageUnit& unit) = 0;
  // Between stages of this process, where it has that device of both: true.
  virtual bool move_here(const StageMovement& movement, int64_t device) = 0;
  // Begins an exchange with other processes. The one before is over, and its room free.
  virtual void exchange(const std::vector<StagePiece>& sent, const std::vector<StagePiece>& received) = 0;
  virtual void wait_for_exchange() = 0;  // if there is one

  const MeshPlan& whole_;
  const PipelinePlan& pipeline_;
  MeshEngine& engine_;
  const StageBlocks blocks_;
  const int64_t ways_;                  // slots: microbatches on their way
  std::vector<const std::byte*> lent_;  // inputs, by values of the whole plan
  double loss_ = 0;                     // of the step
  int64_t failing_ = 0;

 private:
  void carry_out_microbatches();
  void carry_out(const StageUnit& unit);
  void move(const StageMovement& movement);
  bool comes_from_others(const StageUnit& unit) const;
  // Sends what the one list has for other processes, and gets what the other one has from them.
  void exchange_with_others(const std::vector<StageMovement>& out, const std::vector<StageMovement>& in);
};

}  // namespace einc
