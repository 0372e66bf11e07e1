// SPDX-License-Identifier: Apache-2.0
// Collectives as work for a stream: copies between the devices of this GPU, messages to and from those of other processes, and einc's own
// sums where the terms lie.
#pragma once
#include <vector>

#include "runtime/cuda/cuda_mesh.h"
#include "runtime/cuda/nccl_team.h"
#include "runtime/mesh/transfers.h"

namespace einc {

// Blocks of one collective's values that devices `first` to `last` - 1 pack or receive: room for the collective of a plan that has most.
int64_t packed_bytes(const MeshPlan& plan, const MeshShape& mesh, int64_t first, int64_t last);

class MeshMoves {
 public:
  // The devices of this process, and where their values lie, one device after another. `team`: to the processes that have the others; null:
  // there are none.
  struct Place {
    int64_t first = 0, last = 0;
    cuda::DevicePointer memory = 0;
    const cuda::NcclTeam* team = nullptr;
  };
  // All of it outlives this. On the GPU that this thread works on.
  MeshMoves(const MeshPlan& plan, const MeshShape& mesh, const CudaExecutable& helpers, const CudaKernels& kernels, const Place& place);
  // Puts a collective on the stream. One is done before the next one begins.
  void enqueue(uint32_t number, cuda::Stream stream) const;
  int64_t sent_bytes(uint32_t number) const { return all_[number].sent_bytes; }

 private:
  struct Copy {
    cuda::DevicePointer from = 0, to = 0;
    int64_t width = 0, rows = 1, from_pitch = 0, to_pitch = 0;
  };
  struct Sum {
    cuda::Kernel kernel = nullptr;
    size_t terms = 0;  // where in the table of addresses they begin
    cuda::DevicePointer result = 0;
    int64_t count = 0;
  };
  struct Messages {
    std::vector<cuda::NcclTeam::Message> sends, receives;
  };
  struct Moves {
    std::vector<Copy> packs;  // of blocks that do not lie without gaps, to where they do
    Messages terms;
    std::vector<Sum> sums;
    Messages messages;
    std::vector<Copy> copies;
    int64_t sent_bytes = 0;
  };

  Moves moves_of(const MeshPlan& plan, const MeshShape& mesh, const MeshCollective& c, std::vector<uint64_t>& table);
  cuda::DevicePointer at(int64_t device, uint32_t value) const;
  bool holds(int64_t device) const { return device >= place_.first && device < place_.last; }
  int process_of(int64_t device) const { return static_cast<int>(device / (place_.last - place_.first)); }
  void move(const Messages& messages, cuda::Stream stream) const;
  static void run(const Copy& copy, cuda::Stream stream);

  const MeshPlan& plan_;
  const CudaExecutable& helpers_;
  const CudaKernels& kernels_;
  const Place place_;
  int64_t packed_bytes_ = 0;
  cuda::DeviceMemory packed_;  // of the collective in progress
  cuda::DeviceMemory terms_;   // addresses
  std::vector<Moves> all_;     // by collective
};

// A function of CudaMeshPart::helpers.
cuda::Kernel helper(const CudaExecutable& helpers, const CudaKernels& kernels, const std::string& name);
// Blocks of kHelperThreads for so many elements.
uint32_t helper_blocks(int64_t count);

}  // namespace einc
