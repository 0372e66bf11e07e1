// SPDX-License-Identifier: Apache-2.0
// Devices of a mesh on this machine's processor: they take each step of the plan one after another, in memory of their own, while a thread
// carries out the collectives.
#pragma once
#include <deque>
#include <memory>

#include "runtime/executor/executor.h"
#include "runtime/mesh/engine.h"
#include "runtime/mesh/part_devices.h"

namespace einc {

// The memory of one part's values on the devices of this process.
class DeviceMemory {
 public:
  DeviceMemory(const MeshPlan& plan, int64_t devices);
  std::byte* at(int64_t d, uint32_t value) const { return mapping_.base() + d * plan_.bytes + plan_.values[value].offset; }
  // A number that no machine has when the product does not fit.
  static int64_t bytes_of_all(const MeshPlan& plan, int64_t devices);

 private:
  const MeshPlan& plan_;
  Mapping mapping_;
};

// What the launches of a part work in on a device.
int64_t working_bytes(const MeshPlan& plan, int threads);

class HostDevices;

// What the parts of a program share, of which one runs at a time.
struct HostMachine {
  HostMachine(MeshEngine& engine, LentPool& lent, std::shared_ptr<ThreadPool> pool, int64_t working_bytes);

  MeshEngine& engine;
  LentPool& lent;
  std::shared_ptr<ThreadPool> pool;
  std::vector<std::shared_ptr<Mapping>> working;  // by device
  HostDevices* running = nullptr;                 // whose collectives the queue carries out
  CollectiveQueue queue;                          // the last: its thread ends before what it works on
};

class HostDevices : public PartDevices {
 public:
  HostDevices(const MeshPlan& plan, std::shared_ptr<HostMachine> machine);

  std::byte* place(int64_t d, uint32_t value) override { return memory_.at(d, value); }
  const std::byte* read(int64_t d, uint32_t value, std::vector<std::byte>&) const override { return memory_.at(d, value); }
  void copy(uint32_t value, uint32_t target) override;
  void run(uint64_t seed, uint64_t step) override;
  int64_t failing_device() const override { return working_; }
  bool holds_numbers(uint32_t value) const override;
  bool may_store(uint32_t value, uint32_t old) const override;
  void carry_out(uint32_t number);

 private:
  int64_t held() const { return machine_->engine.last() - machine_->engine.first(); }
  bool holds_numbers(int64_t d, uint32_t value) const;
  void compute(const DeviceStep& step, uint64_t seed, uint64_t number);

  const MeshPlan& plan_;
  std::shared_ptr<HostMachine> machine_;
  DeviceMemory memory_;
  std::deque<Executor> executors_;  // by device
  int64_t working_ = 0;             // the device that a step is computed for
};

}  // namespace einc
