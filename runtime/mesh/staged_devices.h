// SPDX-License-Identifier: Apache-2.0
// Stages of a pipeline on this machine's processor.
#pragma once
#include "runtime/mesh/host_devices.h"
#include "runtime/mesh/staged_parts.h"

namespace einc {

// What launches of any of its stages' rounds work in on a device.
int64_t staged_working_bytes(const PipelineStage& stage, int threads);

class StagedDevices : public StagedParts {
 public:
  StagedDevices(const MeshPlan& plan, std::shared_ptr<HostMachine> machine);

  std::byte* place(int64_t d, uint32_t value) override;
  const std::byte* read(int64_t d, uint32_t value, std::vector<std::byte>& room) const override;
  void copy(uint32_t value, uint32_t target) override;
  NonFinite run(uint64_t seed, uint64_t step) override;
  bool holds_numbers(uint32_t value) const override;
  bool may_store(uint32_t value, uint32_t old) const override;

 private:
  struct Stage {
    Stage(const PipelineStage& of, int its_number, MeshEngine its_engine) : plan(of), number(its_number), engine(std::move(its_engine)) {}
    const PipelineStage& plan;
    const int number;
    MeshEngine engine;
    std::vector<std::unique_ptr<Mapping>> kept;  // by slots behind the first, and devices: what launches keep for the backward
    std::deque<HostRun> slots;                   // of the microbatches that are on their way
    std::map<int, HostRun> once;                 // the other rounds, by number
    const HostRun& of(int round, size_t slot) const { return round == kRoundOfMicrobatches ? slots[slot] : once.at(round); }
    HostRun& of(int round, size_t slot) { return round == kRoundOfMicrobatches ? slots[slot] : once.at(round); }
  };
  Stage* stage(int number);
  const Stage* stage(int number) const;
  int64_t full_device(const Stage& s, int64_t d) const { return s.number * blocks_.devices + s.engine.first() + d; }
  // Where a stage has a value, on its device of that number among all of the stage.
  std::byte* at(const StageValue& value, int64_t device, int64_t microbatch);

  void add_stage(int number);
  void cut_out(Stage& s, int64_t microbatch);
  void run_round(int round) override;
  NonFinite fault_here() override;
  NonFinite agree_on_step();
  void store();
  void begin_microbatches() override;
  void end_microbatches() override;
  void run_segment(int stage, const StageUnit& unit) override;
  bool move_here(const StageMovement& movement, int64_t device) override;
  void exchange(const std::vector<StagePiece>& sent, const std::vector<StagePiece>& received) override;
  void wait_for_exchange() override;

  std::shared_ptr<HostMachine> machine_;
  std::deque<Stage> stages_;
  std::vector<std::byte> outgoing_, incoming_;  // of the exchange in progress
  std::optional<uint32_t> on_way_;              // its number in the queue
  // Of the run.
  std::unique_lock<std::mutex> computing_;  // of the machine's threads
  uint64_t seed_ = 0, step_ = 0;
};

}  // namespace einc
