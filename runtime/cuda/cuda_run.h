// SPDX-License-Identifier: Apache-2.0
// Devices of a mesh on one GPU that take the steps of one plan: launches on one stream, collectives on another one, in the order of the
// plan; an event where a collective starts holds it back until what it reads is made, another one holds back the launches that wait for it.
#pragma once
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "runtime/cuda/cuda_machine.h"
#include "runtime/cuda/mesh_moves.h"

namespace einc {

// The memory of a plan's values on devices of this process, as DeviceMemory is the processor's.
class CudaValues {
 public:
  // `sibling`: of the same plan, for another microbatch: has all but what that keeps for its backward.
  CudaValues(const MeshPlan& plan, int64_t devices, const CudaValues* sibling = nullptr);
  cuda::DevicePointer at(int64_t d, uint32_t value) const;
  // A value that takes no room here.
  void put(int64_t d, uint32_t value, cuda::DevicePointer memory) { elsewhere_[{d, value}] = memory; }

 private:
  const MeshPlan& plan_;
  GpuMemory shared_, kept_;
  std::map<std::pair<int64_t, uint32_t>, cuda::DevicePointer> elsewhere_;
};

// A plan, compiled.
struct CudaMeshCode {
  const MeshPlan& plan;
  const CudaExecutable& device;
  const CudaKernels& kernels;
  const CudaExecutable& helpers;
  const CudaKernels& helper_kernels;
};

class CudaRun {
 public:
  // `engine`: of the devices; `working`: by those of this process. Along `stages` nothing is moved here: of shifts along it, those of a sum
  // over microbatches add a term to it.
  CudaRun(const CudaMeshCode& code, CudaMachine& machine, const MeshEngine& engine, std::span<const GpuMemory> working, CudaValues values,
          DoneMarks* marks, int stages = kNoMeshAxis);
  CudaRun(const CudaRun&) = delete;
  CudaRun& operator=(const CudaRun&) = delete;

  const MeshPlan& plan() const { return code_.plan; }
  cuda::DevicePointer at(int64_t d, uint32_t value) const { return values_.at(d, value); }
  const CudaValues& values() const { return values_; }
  // What of the memory that launches work in lies before `bytes` lies there from now on.
  void place_kept(int64_t d, int64_t bytes, cuda::DevicePointer memory);

  // As CudaExecutor's, of all devices.
  void begin(uint64_t seed, std::span<const uint64_t> steps);
  void enqueue_begin(size_t run = 0);
  void enqueue_steps(size_t first, size_t last);
  // All that was started is over, and what devices look at of what so many launches have made lies in the host's memory: what of that is
  // not finite, once somebody has waited.
  void enqueue_agreement(uint32_t launches);
  NonFinite fault(uint32_t launches);
  void enqueue_copies();  // of a plan in place, behind the last step
  void enqueue_end(size_t run = 0);
  // Throws as CudaExecutor::check_parts: on that device of this process.
  void check(int64_t d) { executors_[static_cast<size_t>(d)].check_parts(); }
  void enqueue_copy(uint32_t value, uint32_t target);
  void enqueue_snapshots();
  int64_t held() const { return engine_.held(); }

  int64_t sent_bytes(uint32_t collective) const { return moves_.sent_bytes(collective); }
  std::deque<CudaExecutor>& executors() { return executors_; }

 private:
  struct Events {
    cuda::OwnedEvent ready, done;
  };
  cuda::Stream compute() const { return machine_.compute->get(); }
  void add_executors(std::span<const GpuMemory> working);
  void add_sums();
  void set_coordinates();
  void enqueue(const DeviceStep& step);
  void add_to_sum(uint32_t collective);

  const CudaMeshCode code_;
  CudaMachine& machine_;
  const MeshEngine& engine_;
  CudaValues values_;
  DoneMarks* marks_;
  const int stages_;
  std::deque<CudaExecutor> executors_;  // by device
  MeshMoves moves_;
  std::vector<Events> events_;           // by collective
  uint32_t started_ = 0, over_ = 0;      // collectives of the run
  cuda::DeviceMemory terms_;             // addresses of sums over microbatches and of their terms, device by device
  std::map<uint32_t, size_t> terms_of_;  // by collective: where its first device's begin
};

}  // namespace einc
