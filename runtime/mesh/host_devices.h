// SPDX-License-Identifier: Apache-2.0
// Devices of a mesh on this machine's processor: they take each step of a plan one after another, in memory of their own, while a thread
// carries out the collectives.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <span>

#include "runtime/executor/executor.h"
#include "runtime/mesh/engine.h"
#include "runtime/mesh/part_devices.h"

namespace einc {

// Each thread a piece, where it is worth that.
void copy_all(ThreadPool& pool, const std::byte* from, int64_t bytes, std::byte* to);

// The memory of a plan's values on devices of this process.
class DeviceMemory {
 public:
  // `sibling`: of the same plan, for another microbatch: has all but what that keeps for its backward.
  DeviceMemory(const MeshPlan& plan, int64_t devices, const DeviceMemory* sibling = nullptr);
  std::byte* at(int64_t d, uint32_t value) const {
    if (plan_.values[value].offset == kElsewhere) return elsewhere_.at({d, value});
    const ValuePlace place = place_of(plan_, d, value);
    return (place.of_microbatch ? kept_->base() : shared_->base()) + place.offset;
  }
  // A value that takes no room here.
  void put(int64_t d, uint32_t value, std::byte* memory) { elsewhere_[{d, value}] = memory; }
  // A number that no machine has when the product does not fit.
  static int64_t bytes_of_all(const MeshPlan& plan, int64_t devices);

 private:
  const MeshPlan& plan_;
  std::shared_ptr<Mapping> shared_;
  std::unique_ptr<Mapping> kept_;
  std::map<std::pair<int64_t, uint32_t>, std::byte*> elsewhere_;
};

// What the launches of a part work in on a device.
int64_t working_bytes(const MeshPlan& plan, int threads);

// What the parts of a program share, of which one runs at a time.
struct HostMachine {
  // `working_bytes`: by device of this process.
  HostMachine(MeshEngine& engine, LentPool& lent, std::shared_ptr<ThreadPool> pool, const std::vector<int64_t>& working_bytes);

  MeshEngine& engine;
  LentPool& lent;
  std::shared_ptr<ThreadPool> pool;
  std::vector<std::shared_ptr<Mapping>> working;  // by device
  CollectiveQueue queue;                          // the last: its thread ends before what it works on
};

// Devices that take the steps of one plan.
class HostRun {
 public:
  // `engine`: of the devices; `working`: by those of this process. Along `stages` nothing is moved here: of shifts along it, those of a sum
  // over microbatches add a term to it, and others say when one goes on.
  HostRun(const MeshPlan& plan, HostMachine& machine, MeshEngine& engine, std::span<const std::shared_ptr<Mapping>> working,
          DeviceMemory memory, int stages = kNoMeshAxis);

  // What of the memory that launches work in lies before `bytes` lies there from now on.
  void place_kept(int64_t d, int64_t bytes, std::byte* memory);
  std::byte* at(int64_t d, uint32_t value) const { return memory_.at(d, value); }
  const DeviceMemory& memory() const { return memory_; }
  void copy(uint32_t value, uint32_t target);
  void begin();  // of a run
  // Steps `first` to `last`, or up to where processes agree that something is not finite. `computing`: of the machine's threads.
  NonFinite run_steps(size_t first, size_t last, uint64_t seed, uint64_t step, std::unique_lock<std::mutex>& computing);
  NonFinite fault() const;                      // of what launches so far have made for a look
  void store_copies();                          // of a plan in place, behind the last step
  int64_t working() const { return working_; }  // the device that a step is computed for
  bool holds_numbers(uint32_t value) const;
  // `old`: of a plan of the same devices.
  bool may_store(uint32_t value, const HostRun& of_old, uint32_t old) const;

  const MeshPlan& plan() const { return plan_; }
  std::vector<SentBytes> sent;  // since the run's begin
  MeshTimes times;

 private:
  int64_t held() const { return engine_.held(); }
  bool holds_numbers(int64_t d, uint32_t value) const;
  void compute(const DeviceStep& step, uint64_t seed, uint64_t number);
  NonFinite agree(std::unique_lock<std::mutex>& computing);
  void add_to_sum(const MeshCollective& sum, int64_t d);
  void carry_out(uint32_t number);

  const MeshPlan& plan_;
  HostMachine& machine_;
  MeshEngine& engine_;
  DeviceMemory memory_;
  const int stages_;                // a mesh axis
  std::deque<Executor> executors_;  // by device
  std::vector<uint32_t> in_queue_;  // by collective
  int64_t working_ = 0;
  uint32_t computed_ = 0;  // launches of the run
};

class HostDevices : public PartDevices {
 public:
  HostDevices(const MeshPlan& plan, std::shared_ptr<HostMachine> machine);

  std::byte* place(int64_t d, uint32_t value) override { return run_.at(d, value); }
  const std::byte* read(int64_t d, uint32_t value, std::vector<std::byte>&) const override { return run_.at(d, value); }
  void copy(uint32_t value, uint32_t target) override { run_.copy(value, target); }
  NonFinite run(uint64_t seed, uint64_t step) override;
  int64_t failing_device() const override { return run_.working(); }
  bool holds_numbers(uint32_t value) const override { return run_.holds_numbers(value); }
  bool may_store(uint32_t value, uint32_t old) const override { return run_.may_store(value, run_, old); }

 private:
  std::shared_ptr<HostMachine> machine_;
  HostRun run_;
};

}  // namespace einc
