// A program with its memory on the GPU, ready to run. Inputs, params and states lie in its own memory or where they are bound.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/host_array.h"
#include "runtime/cuda/cubin.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/device.h"
#include "runtime/executor/executor.h"
#include "runtime/program/kernel_function.h"

namespace einc {

// The kernels of an executable on the GPU; may be shared by executors.
class CudaKernels {
 public:
  // Compiles what the cache has not. Throws RuntimeFailure (resource).
  CudaKernels(const CudaExecutable& executable, FileCache& cache, int threads);
  cuda::Kernel kernel(uint32_t function) const { return kernels_[function]; }

 private:
  std::vector<cuda::OwnedLibrary> libraries_;
  std::vector<cuda::Kernel> kernels_;  // by function
};

class CudaExecutor {
 public:
  // The executable and its kernels outlive the executor. Throws RuntimeFailure (resource): no GPU, too little memory.
  CudaExecutor(const CudaExecutable& executable, const CudaKernels& kernels, Sources sources);
  CudaExecutor(const CudaExecutor&) = delete;
  CudaExecutor& operator=(const CudaExecutor&) = delete;

  // An input, param or state lies there from now on.
  void bind(uint32_t buffer, cuda::DevicePointer memory) { addresses_[buffer] = memory; }
  cuda::DevicePointer address(uint32_t buffer) const { return addresses_[buffer]; }
  int find(BufferRole role, const std::string& name) const;  // -1: none
  // Row-major elements; waits for the GPU.
  void set(uint32_t buffer, const HostArray& array);  // of the same dtype and shape
  HostArray get(uint32_t buffer) const;

  // One run. `step` keys the random streams, as does `seed`. Throws RuntimeFailure: data for an index out of range, resource when the GPU
  // fails, with the launch's label and source line.
  void run(uint64_t seed, uint64_t step);
  cuda::Stream stream() const { return stream_.get(); }
  const Executable& program() const { return executable_.program; }

 private:
  // Of the program, in device memory: what kernels get besides their buffers. Laid out as the generated code reads it.
  struct Control {
    uint64_t step = 0;
    struct Fault {
      IndexFault first;
      uint32_t lock = 0;
    } fault;
  };

  void upload_control(uint64_t seed, uint64_t step);
  void launch(size_t index);
  void copy_all(const std::vector<BufferCopy>& copies);
  void report_fault();

  const CudaExecutable& executable_;
  const CudaKernels& kernels_;
  cuda::OwnedStream stream_;
  cuda::DeviceMemory memory_, control_;
  cuda::HostMemory staged_;  // of control_
  std::vector<cuda::DevicePointer> addresses_;
  std::vector<size_t> first_key_;  // by launch: of its streams' keys, behind the Control
  size_t keys_ = 0;
};

}  // namespace einc
