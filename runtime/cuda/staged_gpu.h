// SPDX-License-Identifier: Apache-2.0
// Stages of a pipeline on one GPU, in the order of those on a processor (runtime/mesh/staged_parts.h): all of a step is put on the
// streams at once, and what the host has to add, inputs and the step's number, lies in pinned memory that copies of the step read.
#pragma once
#include <map>
#include <optional>

#include "runtime/cuda/cuda_run.h"
#include "runtime/mesh/staged_parts.h"

namespace einc {

// Of a part whose plan is a pipeline's: by stage and round; null where the round has nothing to do, or another process the stage.
struct StagedCode {
  const MeshPlan& whole;
  const CudaMeshPart& part;
  const std::vector<std::vector<std::unique_ptr<CudaKernels>>>& kernels;
  const CudaKernels& helper_kernels;
};

// What the stages of a process take on a GPU, the memory that parts share apart.
int64_t staged_gpu_bytes(const MeshShape& mesh, const PipelinePlan& pipeline, int64_t processes, int64_t rank);

class StagedGpu : public StagedParts {
 public:
  StagedGpu(const StagedCode& code, std::shared_ptr<CudaMachine> machine);
  ~StagedGpu() override;

  std::byte* place(int64_t d, uint32_t value) override;
  void written(int64_t d, uint32_t value) override;
  const std::byte* read(int64_t d, uint32_t value, std::vector<std::byte>& room) const override;
  void copy(uint32_t value, uint32_t target) override;
  NonFinite run(uint64_t seed, uint64_t step) override;
  bool holds_numbers(uint32_t value) const override;
  bool may_store(uint32_t value, uint32_t old) const override;
  std::string numerics() override;

 private:
  struct Stage {
    Stage(const PipelineStage& of, int its_number, MeshEngine its_engine) : plan(of), number(its_number), engine(std::move(its_engine)) {}
    const PipelineStage& plan;
    const int number;
    MeshEngine engine;
    std::vector<cuda::DeviceMemory> kept;  // by slots behind the first, and devices: what launches keep for the backward
    std::deque<CudaRun> slots;             // of the microbatches that are on their way
    std::map<int, CudaRun> once;           // the other rounds that do something, by number
    std::vector<size_t> input_at;          // by plan.inputs: where the first microbatch's first device's lies in inputs_
    const CudaRun& of(int round, size_t slot) const { return round == kRoundOfMicrobatches ? slots[slot] : once.at(round); }
  };

  cuda::Stream compute() const { return machine_->compute->get(); }
  const Stage* stage(int number) const;
  // Where a stage has a value, on its device of that number among all of the stage; 0: another process has it.
  cuda::DevicePointer at(const StageValue& value, int64_t device, int64_t microbatch) const;
  size_t input_bytes(const Stage& s, const MicrobatchInput& input) const;
  std::byte* input_at(const Stage& s, size_t input, int64_t microbatch, int64_t d) const;
  size_t most_exchanges() const;

  void add_stage(int number);
  void add_checks();
  void cut_out();
  void enqueue();
  void enqueue_stores();
  void enqueue_steps(CudaRun& run, size_t first, size_t last);
  void check_runs();
  void run_round(int round) override;
  NonFinite fault_here() override;
  void begin_microbatches() override;
  void end_microbatches() override;
  void run_segment(int stage, const StageUnit& unit) override;
  bool move_here(const StageMovement& movement, int64_t device) override;
  void exchange(const std::vector<StagePiece>& sent, const std::vector<StagePiece>& received) override;
  void wait_for_exchange() override;
  void add_losses();
  template <class Do>
  void each_run(Do on_run) {
    for (Stage& s : stages_) {
      for (CudaRun& slot : s.slots) on_run(s, slot);
      for (auto& [round, once] : s.once) on_run(s, once);
    }
  }

  const StagedCode code_;
  std::shared_ptr<CudaMachine> machine_;
  std::optional<DoneMarks> marks_;
  std::deque<Stage> stages_;
  cuda::HostMemory inputs_;      // of all microbatches
  cuda::DeviceMemory outgoing_;  // of the exchange in progress
  cuda::OwnedEvent made_, exchanged_;
  bool on_way_ = false;
  CudaChecks checks_;
  std::map<uint32_t, size_t> check_of_;  // by value of the whole plan
  std::vector<std::byte> placed_;
  cuda::HostMemory losses_here_;  // by microbatch, of whatever dtype, in eight bytes each
  CapturedWork step_, stores_;
  size_t marked_ = 0, sent_before_ = 0;  // before the stores
};

}  // namespace einc
