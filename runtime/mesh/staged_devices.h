// SPDX-License-Identifier: Apache-2.0
// Stages of a pipeline on this machine's processor. The stages of a process are one block of neighbours: a forward goes through all of
// them, and so does a backward. Blocks take turns as stages do (one forward, one backward; Narayanan et al. 2021, section 2.2), so that
// each process computes one microbatch while others compute other ones. Which process has which stages changes no bits: sums over
// microbatches are taken in their order.
#pragma once
#include "runtime/mesh/host_devices.h"
#include "runtime/mesh/pipeline_plan.h"
#include "runtime/mesh/stage_order.h"

namespace einc {

// What launches of any of its stages' rounds work in on a device.
int64_t staged_working_bytes(const PipelineStage& stage, int threads);

class StagedDevices : public PartDevices {
 public:
  StagedDevices(const MeshPlan& plan, std::shared_ptr<HostMachine> machine);

  std::byte* place(int64_t d, uint32_t value) override;
  bool lend(uint32_t value, const std::byte* whole) override;
  const std::byte* read(int64_t d, uint32_t value, std::vector<std::byte>& room) const override;
  void copy(uint32_t value, uint32_t target) override;
  void run(uint64_t seed, uint64_t step) override;
  int64_t failing_device() const override { return failing_; }
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
  size_t slot_of(int64_t microbatch) const { return static_cast<size_t>(microbatch % ways_); }
  int64_t full_device(const Stage& s, int64_t d) const { return s.number * blocks_.devices + s.engine.first() + d; }
  // Where a stage has a value, on its device of that number among all of the stage.
  std::byte* at(const StageValue& value, int64_t device, int64_t microbatch);
  const DeviceTensor& tensor(const StageValue& value) const { return tensor_of(pipeline_, value); }

  void add_stage(int number);
  void compute(const StageUnit& unit, uint64_t seed, uint64_t step, std::unique_lock<std::mutex>& computing);
  void run_segment(Stage& s, const StageUnit& unit, uint64_t seed, uint64_t step, std::unique_lock<std::mutex>& computing);
  void cut_out(Stage& s, int64_t microbatch);
  void clear_sums(Stage& s);
  void take_means(Stage& s);
  void move_here(const StageMovement& movement);
  bool comes_from_others(const std::vector<StageMovement>& list) const;
  // Sends what the one list has for other processes, and gets what the other one has from them, behind the exchange before, whose room it
  // takes: the queue carries out one at a time anyway.
  void exchange_with_others(const std::vector<StageMovement>& out, const std::vector<StageMovement>& in,
                            std::unique_lock<std::mutex>& computing);
  void wait_for_exchange(std::unique_lock<std::mutex>& computing);
  void run_microbatches(uint64_t seed, uint64_t step, std::unique_lock<std::mutex>& computing);
  void hand_over(size_t round, std::unique_lock<std::mutex>& computing);
  void share_loss();

  const MeshPlan& whole_;
  const PipelinePlan& pipeline_;
  std::shared_ptr<HostMachine> machine_;
  const StageBlocks blocks_;
  const int64_t ways_;  // slots
  std::deque<Stage> stages_;
  std::vector<const std::byte*> lent_;          // inputs, by values of the whole plan
  std::vector<std::byte> outgoing_, incoming_;  // of the exchange in progress
  std::optional<uint32_t> on_way_;              // its number in the queue
  double loss_ = 0;                             // of the step
  int64_t failing_ = 0;
};

}  // namespace einc
