// SPDX-License-Identifier: Apache-2.0
// Devices of a mesh on one GPU. A run is two streams: launches on one, collectives on the other, in the order of the plan; an event where a
// collective starts holds it back until what it reads is made, another one holds back the launches that wait for it. From the second run
// on all of it is one captured graph.
#pragma once
#include <deque>
#include <map>

#include "runtime/cuda/cuda_mesh.h"
#include "runtime/cuda/mesh_moves.h"
#include "runtime/mesh/part_devices.h"

namespace einc {

// What the parts of a program share, of which one runs at a time.
struct CudaMachine {
  const cuda::Gpu* gpu;
  const MeshShape& mesh;
  int64_t first, last;  // the devices of this process
  std::shared_ptr<const cuda::OwnedStream> compute;
  cuda::OwnedStream collectives;
  std::vector<std::shared_ptr<const cuda::DeviceMemory>> working;  // by device
  std::shared_ptr<const cuda::DeviceMemory> workspace;
  cuda::NcclTeam* team;  // to the processes that have the others; null: there are none
};

// A part, compiled.
struct CudaMeshCode {
  const MeshPlan& plan;
  const CudaMeshPart& part;
  const CudaKernels& kernels;
  const CudaKernels& helpers;
};

class CudaDevices : public PartDevices {
 public:
  CudaDevices(const CudaMeshCode& code, std::shared_ptr<CudaMachine> machine);
  ~CudaDevices() override;

  std::byte* place(int64_t d, uint32_t value) override;
  void written(int64_t d, uint32_t value) override;
  const std::byte* read(int64_t d, uint32_t value, std::vector<std::byte>& room) const override;
  void copy(uint32_t value, uint32_t target) override;
  void run(uint64_t seed, uint64_t step) override;
  int64_t failing_device() const override { return failing_; }
  bool holds_numbers(uint32_t value) const override { return found(value, 0) == 0; }
  bool may_store(uint32_t value, uint32_t) const override { return found(value, 1) == 0; }
  std::string numerics() override;

 private:
  struct Events {
    cuda::OwnedEvent ready, done;
  };
  // A value that is looked at before anything is stored.
  struct Check {
    uint32_t value = 0, old = 0;
  };

  int64_t held() const { return machine_->last - machine_->first; }
  cuda::Stream compute() const { return machine_->compute->get(); }
  cuda::DevicePointer at(int64_t d, uint32_t value) const;
  void add_executors();
  void add_checks();
  void add_numbers();
  void begin(uint64_t seed, uint64_t step);
  void enqueue();
  void enqueue(const DeviceStep& step);
  void enqueue_checks();
  void play();
  void wait();
  void agree_on_algorithms();
  int32_t found(uint32_t value, size_t which) const;

  const CudaMeshCode code_;
  std::shared_ptr<CudaMachine> machine_;
  cuda::DeviceMemory memory_;
  std::deque<CudaExecutor> executors_;  // by device
  MeshMoves moves_;
  std::vector<Events> events_;  // by collective
  std::vector<Check> checks_;
  std::map<uint32_t, size_t> check_of_;  // by value
  cuda::DeviceMemory found_;             // two words of each check
  cuda::HostMemory found_here_;
  std::vector<std::byte> placed_;
  cuda::DeviceMemory numbers_;  // 1, 2, ...: behind each collective one is copied
  cuda::HostMemory done_here_;  // here: so many collectives of a run are done
  bool ran_ = false;
  cuda::OwnedGraphExec graph_;
  int64_t failing_ = 0;
};

}  // namespace einc
