// SPDX-License-Identifier: Apache-2.0
// Collectives as work for a stream: copies between the devices of this GPU, messages to and from those of other processes, and einc's own
// sums where the terms lie.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "runtime/cuda/cuda_mesh.h"
#include "runtime/cuda/nccl_team.h"
#include "runtime/mesh/transfers.h"

namespace einc {

// Blocks that devices `first` to `last` - 1 pack or receive at once: room for the piece of a plan's collectives that has most.
int64_t packed_bytes(const MeshPlan& plan, const MeshShape& mesh, int64_t first, int64_t last, int stages = kNoMeshAxis);

class MeshMoves {
 public:
  // The devices of this process, where their values lie (`d` counts them), and where blocks are packed, of packed_bytes. `team`: to the
  // processes that have the others; null: there are none.
  struct Place {
    int64_t first = 0, last = 0;
    std::function<cuda::DevicePointer(int64_t d, uint32_t value)> at;
    std::function<int64_t(int64_t device)> process_of{};
    std::shared_ptr<const cuda::DeviceMemory> packed{};
    const cuda::NcclTeam* team = nullptr;
  };
  // All of it outlives this. On the GPU that this thread works on. Nothing is moved along `stages` (pipeline_plan.h).
  MeshMoves(const MeshPlan& plan, const MeshShape& mesh, const CudaExecutable& helpers, const CudaKernels& kernels, Place place,
            int stages = kNoMeshAxis);
  // Puts a collective on the stream, with the first of a move all that go in it. One move is done before the next one begins.
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
  struct Piece {
    std::vector<Copy> packs;  // of blocks that do not lie without gaps, to where they do
    Messages terms;
    std::vector<Sum> sums;
    Messages messages;
    std::vector<Copy> copies;
  };
  struct Moves {
    std::vector<Piece> pieces;
    int64_t sent_bytes = 0;
  };

  Piece piece_of(const MeshPlan& plan, const MeshCollective& c, const CollectiveSteps& steps, std::vector<uint64_t>& table);
  void join(uint32_t number);  // to the one before
  cuda::DevicePointer at(int64_t device, uint32_t value) const;
  bool holds(int64_t device) const { return device >= place_.first && device < place_.last; }
  int process_of(int64_t device) const { return static_cast<int>(place_.process_of(device)); }
  void move(const Messages& messages, cuda::Stream stream) const;
  static void run(const Copy& copy, cuda::Stream stream);

  const CudaExecutable& helpers_;
  const CudaKernels& kernels_;
  const Place place_;
  int64_t packed_bytes_ = 0;
  cuda::DeviceMemory terms_;  // addresses
  std::vector<Moves> all_;    // by collective
};

// A function of CudaMeshPart::helpers.
cuda::Kernel helper(const CudaExecutable& helpers, const CudaKernels& kernels, const std::string& name);
// Blocks of kHelperThreads for so many elements.
uint32_t helper_blocks(int64_t count);

}  // namespace einc
