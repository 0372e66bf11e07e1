// SPDX-License-Identifier: Apache-2.0
// A program with its memory on the GPU, ready to run. Inputs, params and states lie in its own memory or where they are bound.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/host_array.h"
#include "runtime/base/iterations.h"
#include "runtime/cpu/thread_pool.h"
#include "runtime/cuda/attention_library.h"
#include "runtime/cuda/cubin.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/fault_record.h"
#include "runtime/cuda/gemm.h"
#include "runtime/executor/step_guard.h"
#include "runtime/program/kernel_function.h"
#include "runtime/program/launch_span.h"

namespace einc {

// The kernels of an executable on the GPU; may be shared by executors.
class CudaKernels {
 public:
  // Compiles what the cache has not, for the GPU that this thread works on. Throws RuntimeFailure (resource).
  CudaKernels(const CudaExecutable& executable, FileCache& cache, int threads);
  // Before they run on a GPU, which may be another of the same shape.
  void prepare(const cuda::Gpu& gpu) const;
  cuda::Kernel kernel(uint32_t function) const { return kernels_[function]; }

 private:
  std::vector<cuda::OwnedLibrary> libraries_;
  std::vector<cuda::Kernel> kernels_;   // by function
  std::vector<uint32_t> shared_bytes_;  // by function: the most that a launch takes
};

// Where an executor works; executors of one place run one after another, and what one leaves in the memory another may overwrite.
struct CudaPlace {
  const cuda::Gpu* gpu;
  std::shared_ptr<const cuda::OwnedStream> stream;
  std::shared_ptr<const cuda::DeviceMemory> memory;     // of Executable::own_bytes
  std::shared_ptr<const cuda::DeviceMemory> workspace;  // of CudaExecutable::workspace_bytes; none: of no products
};
// None of no bytes. Throws RuntimeFailure (resource).
std::shared_ptr<const cuda::DeviceMemory> gemm_workspace(int64_t bytes);

class CudaExecutor {
 public:
  // In memory of its own on the GPU that this thread works on, sources included. The executable and its kernels outlive the executor.
  // Throws RuntimeFailure (resource): no GPU, too little memory.
  CudaExecutor(const CudaExecutable& executable, const CudaKernels& kernels);
  // Sources are bound before the first run.
  CudaExecutor(const CudaExecutable& executable, const CudaKernels& kernels, CudaPlace place);
  ~CudaExecutor();  // waits: copies may be under way from and to its pinned memory
  CudaExecutor(const CudaExecutor&) = delete;
  CudaExecutor& operator=(const CudaExecutor&) = delete;

  // An input, param or state lies there from now on.
  void bind(uint32_t buffer, cuda::DevicePointer memory);
  int find(BufferRole role, const std::string& name) const;  // -1: none
  // Elements as they lie (CudaExecutable::orders); waits for the GPU.
  void set(uint32_t buffer, const HostArray& array);  // of the same dtype and shape
  HostArray get(uint32_t buffer);
  // Params and states as their initialisers say, made by the processor's threads.
  void initialize(ThreadPool& pool, uint64_t seed);

  // One run, whatever is stored. `step` keys the random streams, as does `seed`. What comes after the numbers that are looked at may still
  // be under way afterwards; whoever reads waits. Throws RuntimeFailure: data for an index out of range, resource when the GPU fails.
  void run(uint64_t seed, uint64_t step);
  // As run, but it ends before it stores what is not finite; `guard` is of the same program.
  NonFinite run_while_finite(uint64_t seed, uint64_t step, StepGuard& guard);
  // All launches, waiting for each, as long as `goes_on` says so after it; a failure names the launch. `apart`: what a product's epilogue
  // or a plug-in does otherwise is done by launches of their own, so that each leaves its values.
  enum class Products : uint8_t { as_chosen, apart };
  void run_while(uint64_t seed, uint64_t step, const std::function<bool(size_t launch)>& goes_on, Products products = Products::as_chosen);
  // As run; tells when the GPU worked on each launch, in their order: seconds since the first one began, as the GPU's events count them.
  std::vector<LaunchSpan> run_traced(uint64_t seed, uint64_t step);
  // Chooses how cuBLASLt multiplies, and with which epilogues; a run does it when it was not done.
  void plan_gemms();
  // Of CudaExecutable::fused, those that run.
  std::vector<size_t> fused_products() const;
  // Chooses between a plug-in's attention and our own; a run does it when it was not done.
  void plan_attention();
  // Of CudaExecutable::attention, those that run.
  std::vector<size_t> library_attention() const;
  // Runs in parts of a larger one, one after another: `begin_parts` before the first, outside of a capture, with the step of each; then, on
  // the stream of the executor's place, what run number `run` begins with, launches `first` to `last`, what is copied to where it is stored
  // of what they make, and what it ends with. Whoever has waited for all asks for faults, which throw as run; who has waited for looks,
  // what is not finite of the numbers that launches before have made for one.
  void begin_parts(uint64_t seed, std::span<const uint64_t> steps);
  void enqueue_begin(size_t run = 0);
  void enqueue_launches(size_t first, size_t last);
  void enqueue_copies(size_t first, size_t last);
  void enqueue_looks(size_t before);
  NonFinite fault_before(size_t launch);
  void enqueue_end(size_t run = 0);
  void check_parts();
  cuda::DevicePointer address(uint32_t buffer) const { return addresses_[buffer]; }
  // Until all runs are done. Throws as run.
  void wait();
  HostArray loss() const;  // of the last run
  const Executable& program() const { return executable_.program; }

 private:
  // Of the program, in device memory: what kernels get besides their buffers, laid out as generated code reads it.
  struct Control {
    uint64_t step = 0;
    cuda::FaultRecord fault;
  };
  // In memory of the host that copies run to and from.
  struct Staged {
    Control before, at_half, at_end;
  };
  // Likewise, of each run in parts.
  struct StagedPart {
    Control before, at_end;
  };
  // Launches between two looks at the numbers that they have made: one graph. Those for unbounded updates are in none.
  struct Segment {
    size_t begin = 0, end = 0;
    std::vector<uint32_t> numbers{};  // buffers that are read after it
    bool checked = false;             // some of them are looked at
    bool ran = false;
    cuda::OwnedGraphExec graph{};
  };

  Staged& staged() const { return *static_cast<Staged*>(staged_.get()); }
  std::byte* staged_number(size_t i) const { return reinterpret_cast<std::byte*>(&staged() + 1) + i * sizeof(uint64_t); }
  uint64_t* staged_keys() const { return reinterpret_cast<uint64_t*>(staged_number(number_of_.size())); }
  StagedPart& staged_part(size_t run) const { return static_cast<StagedPart*>(staged_parts_.get())[run]; }
  cuda::Stream stream() const { return place_.stream->get(); }
  void prepare(uint64_t seed, uint64_t step);
  void find_segments();
  void add_segment(size_t begin, size_t end, const std::vector<CheckedNumber>& checks);
  bool is_made_within(const CheckedNumber& check, size_t begin, size_t end) const;
  bool is_last(const Segment& segment) const { return &segment == &segments_.back(); }
  void play(Segment& segment);
  void enqueue(const Segment& segment);
  void run_unbounded();
  double read(uint32_t buffer);
  void upload_control() { upload_control(staged().before); }
  void upload_control(const Control& before);
  void upload_tables();
  void launch(size_t index, Products products = Products::as_chosen);
  void launch_kernel(size_t index);
  void call_kernel(size_t index, uint32_t function, const CudaGrid& grid, std::vector<uint64_t> pointers);
  // Of a launch, or of one in an iteration: where its streams' keys begin, and how the record of a fault calls it.
  struct LaunchNumbers {
    size_t key = 0;
    int32_t number = 0;
  };
  void call_kernel(const Launch& launch, const LaunchNumbers& numbers, uint32_t function, const CudaGrid& grid,
                   std::vector<uint64_t> pointers);
  void run_scan(const Executable& outside, const std::vector<cuda::DevicePointer>& addresses, const Launch& launch,
                const Iterations& iterations, LaunchNumbers& next);
  cuda::GemmPlan plan(const LibraryProduct& gemm, size_t index);
  void plan_fused();
  bool takes_together(const CudaFusedProduct& fused, const cuda::GemmPlan& plan);
  void run_together(const CudaFusedProduct& fused, const cuda::GemmPlan& plan);
  bool takes_library(const CudaAttention& call, const cuda::AttentionLibrary& library, const cuda::AttentionLibrary::Plan& plan);
  void fill_operands(const CudaAttention& call);
  void run_attention(const CudaAttention& call, const cuda::AttentionLibrary& library, const cuda::AttentionLibrary::Plan& plan);
  // As ColdTimer's.
  double seconds(const std::function<void()>& work) const;
  bool uses_control() const;
  void copy_all(const std::vector<BufferCopy>& copies);
  void read_control(Control& to);
  void read_numbers(const std::vector<uint32_t>& buffers);
  HostArray number(uint32_t buffer) const;
  void check_fault(Control& control);

  const CudaExecutable& executable_;
  const CudaKernels& kernels_;
  std::vector<Segment> segments_;
  std::map<uint32_t, size_t> number_of_;  // by buffer: which of the staged numbers it is read to
  std::optional<size_t> unbounded_;       // the first launch that only unbounded updates need
  CudaPlace place_;
  cuda::DeviceMemory control_;
  cuda::HostMemory staged_, staged_parts_;
  size_t parts_ = 0;  // runs that there is room for
  std::vector<cuda::DevicePointer> addresses_;
  std::vector<size_t> first_key_;      // by launch: of its streams' keys, behind the Control
  std::vector<int32_t> first_number_;  // by launch: scans have one number for each launch of each iteration
  size_t keys_ = 0;
  int32_t numbers_ = 0;
  std::optional<uint64_t> seed_;  // that the staged keys are of
  // Of where the buffers lie now; made anew when one moves.
  cuda::DeviceMemory tables_;                       // of addresses, for functions that read them there
  std::map<size_t, cuda::DevicePointer> table_of_;  // by launch
  std::map<size_t, cuda::GemmPlan> gemms_;          // by launch
  // Of products that are made with their epilogues; and by launch, which of them it is part of.
  std::map<size_t, cuda::GemmPlan> together_;
  std::map<size_t, size_t> part_of_;
  // The plug-in's plans of attention that it computes; and by launch, which of them it is part of. None: not chosen yet.
  std::optional<std::map<size_t, const cuda::AttentionLibrary::Plan*>> attention_;
  std::map<size_t, size_t> attention_part_of_;
};

}  // namespace einc
