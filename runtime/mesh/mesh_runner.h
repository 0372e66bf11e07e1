// SPDX-License-Identifier: Apache-2.0
// Runs a program over a mesh: devices of this process take each step of the plan one after another, in memory of their own. A session's
// memory holds whole params and states; devices work on parts of them, which are cut out when somebody wrote the whole, and put together
// when somebody reads it.
#pragma once
#include <deque>

#include "runtime/base/failure.h"
#include "runtime/executor/executor.h"
#include "runtime/mesh/engine.h"
#include "runtime/mesh/mesh_program.h"

namespace einc {

// The memory of one part's values on the devices of this process.
class DeviceMemory {
 public:
  DeviceMemory(const MeshPlan& plan, int64_t devices);
  std::byte* at(int64_t held, uint32_t value) const { return mapping_.base() + held * plan_.bytes + plan_.values[value].offset; }
  // A number that no machine has when the product does not fit.
  static int64_t bytes_of_all(const MeshPlan& plan, int64_t devices);

 private:
  const MeshPlan& plan_;
  Mapping mapping_;
};

// What the stages of a part run in on a device, one after another.
int64_t working_bytes(const MeshPlan& plan, int threads);

class MeshRunner : public Runner {
 public:
  MeshRunner(const MeshProgram& program, std::shared_ptr<ThreadPool> pool);

  void bind(Source source, void* memory) override;
  void fetch(Source source) override;
  void written(Source source) override;
  void forget(Source source) override;
  void release(Source source) override;
  NonFinite run_while_finite(Part part, uint64_t seed, uint64_t step) override;
  std::string find_fault(Part part, NonFinite what, uint64_t seed, uint64_t step) override;
  TensorView output(uint32_t index) const override;
  TensorView gradient(uint32_t param) const override;
  TensorView loss(Part part) const override;
  const std::vector<SentBytes>& sent(Part part) const { return parts_[part]->sent; }
  const MeshTimes& times(Part part) const { return parts_[part]->times; }

 private:
  struct PartMemory {
    const MeshPlan& plan;
    DeviceMemory memory;
    std::deque<Executor> executors;  // by stage, and in it by device
    std::vector<SentBytes> sent;     // by collective
    MeshTimes times;
    std::vector<bool> fresh;  // by MeshPlan::sources: what devices hold is the newest
    int64_t working = 0;      // the device that a step is computed for
    PartMemory(const MeshPlan& plan_, int64_t devices) : plan(plan_), memory(plan_, devices), fresh(plan_.sources.size(), false) {}
  };
  // A source in the session's memory.
  struct Whole {
    std::byte* memory = nullptr;
    bool fresh = true;
    bool shared = false;
    bool released = false;  // its memory holds nothing while devices have the newest
  };

  Whole& whole(Source source) { return whole_[static_cast<size_t>(source.kind)][source.index]; }
  const TensorInfo& info(Source source) const { return sources_of(program_.info, source.kind)[source.index]; }
  void cut_out(PartMemory& part);
  void cut_out(PartMemory& part, size_t source);
  void empty(Source source);
  int64_t held() const { return engine_.last() - engine_.first(); }
  void add_executors(PartMemory& part, std::span<const std::shared_ptr<Mapping>> working);
  void run_steps(PartMemory& part, uint64_t seed, uint64_t step);
  void compute(PartMemory& part, const DeviceStep& step, uint64_t seed, uint64_t number);
  void carry_out(PartMemory& part, uint32_t number);
  template <class Ask>
  auto ask_whole(Part part, Ask ask);
  [[noreturn]] void refuse_element(const RuntimeFailure& found, int64_t device, Part part, uint64_t seed, uint64_t step);
  NonFinite fault_of(const PartMemory& part) const;
  void store(PartMemory& part);
  TensorView put_together(Part part, const MeshResult& result, const TensorInfo& info) const;

  const MeshProgram& program_;
  std::shared_ptr<ThreadPool> pool_;
  LentPool lent_;
  mutable MeshEngine engine_;
  PerPart<PartMemory> parts_;
  std::vector<Whole> whole_[3];                          // by kind
  mutable std::vector<std::vector<std::byte>> results_;  // that were asked for since the last run
  Part last_ = Part::forward;
  PartMemory* running_ = nullptr;  // whose collectives the queue carries out
  CollectiveQueue queue_;          // the last: its thread ends before what it works on
};

}  // namespace einc
