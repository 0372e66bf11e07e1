// SPDX-License-Identifier: Apache-2.0
// A GPU as the devices of a mesh share it, and what their steps have in common: a captured graph, looks at what is to be stored, and how
// far a step has come.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/cuda_mesh.h"
#include "runtime/cuda/nccl_team.h"
#include "runtime/mesh/engine.h"

namespace einc {

using GpuMemory = std::shared_ptr<const cuda::DeviceMemory>;
class CudaRun;

// NCCL tells nothing of what is under way: behind each exchange of a step its number is copied to where the host looks.
class DoneMarks {
 public:
  explicit DoneMarks(size_t most);
  void begin(cuda::Stream stream);  // a step
  void mark(cuda::Stream stream, std::string label);
  // A step that is captured in several parts: where one ends, and where the next goes on whichever of them are only played again.
  size_t marked() const { return labels_.size(); }
  void go_on(size_t marked) { labels_.resize(marked); }
  // The first that is not done, such as "all_gather #3"; none: all are.
  std::string next() const;

 private:
  cuda::DeviceMemory numbers_;  // 0, 1, 2, ...
  cuda::HostMemory done_here_;
  std::vector<std::string> labels_;
};

// What the parts of a program share, of which one runs at a time.
struct CudaMachine {
  const cuda::Gpu* gpu;
  MeshEngine& engine;
  std::shared_ptr<const cuda::OwnedStream> compute;
  cuda::OwnedStream collectives;
  std::vector<GpuMemory> working;  // by device of this process
  GpuMemory workspace, packed;
  cuda::NcclTeam* team;  // to the processes that have the others; null: there are none

  void write(cuda::DevicePointer memory, std::span<const std::byte> bytes) const;
  void read(cuda::DevicePointer memory, std::span<std::byte> bytes) const;
  // Until a step is done. Throws RuntimeFailure where a process is lost or late.
  void wait(const std::optional<DoneMarks>& marks) const;
  // Another algorithm sums in another order: processes that have measured others must not go on. When all products are planned.
  void agree_on_algorithms() const;
  // What bits depend on (PartDevices::numerics).
  std::string numerics(std::span<CudaRun* const> runs) const;
  // A run that failed may have left work on both streams.
  void end() const;
};

// Nothing where there is one process.
std::optional<DoneMarks> marks_of(const CudaMachine& machine, size_t most);

// Work for the GPU, put together launch by launch the first time and from then on one captured graph: what the driver and cuBLASLt set up
// when first asked for something may not be set up during a capture.
class CapturedWork {
 public:
  void play(cuda::Stream stream, const std::function<void()>& enqueue);
  bool ran() const { return ran_; }

 private:
  bool ran_ = false;
  cuda::OwnedGraphExec graph_;
};

// Looks at values before anything is stored: one copy tells the host of all.
class CudaChecks {
 public:
  struct Check {
    cuda::DevicePointer next = 0, old = 0;
    DType dtype = DType::f32;
    int64_t count = 0;
  };
  // Of dtypes that hold numbers only nothing is asked. The number of the check; each may look at several devices' values.
  size_t add(std::vector<Check> checks);
  void allocate();
  void enqueue(const CudaExecutable& helpers, const CudaKernels& kernels, cuda::Stream stream) const;
  bool is_number(size_t check) const { return found(check, 0) == 0; }
  bool may_store(size_t check) const { return found(check, 1) == 0; }

 private:
  int32_t found(size_t check, size_t which) const { return static_cast<const int32_t*>(found_here_.get())[2 * check + which]; }

  std::vector<std::vector<Check>> checks_;
  cuda::DeviceMemory found_;  // two words of each
  cuda::HostMemory found_here_;
};

}  // namespace einc
