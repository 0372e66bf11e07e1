#include "runtime/cuda/cuda_executor.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/base/random.h"

namespace einc {
namespace {

std::string place_of(const Launch& launch) {
  return launch.location.empty() ? fmt::format(", in '{}'", launch.label) : fmt::format(", in '{}' ({})", launch.label, launch.location);
}

}  // namespace

CudaExecutor::CudaExecutor(const CudaExecutable& executable, const CudaKernels& kernels, Sources sources)
    : executable_(executable), kernels_(kernels) {
  const Executable& program = executable.program;
  EINC_CHECK(executable.calls.size() == program.launches.size(), "{} calls of {} launches", executable.calls.size(),
             program.launches.size());
  cuda::Gpu::get().make_current();
  stream_ = cuda::make_stream();
  memory_ = cuda::allocate(sources == Sources::own ? program.memory_bytes : program.own_bytes, "the program's memory");
  for (const ExecutableBuffer& b : program.buffers)
    addresses_.push_back(sources == Sources::bound && is_source(b.role) ? 0 : memory_.get() + static_cast<uint64_t>(b.offset));
  for (const Launch& launch : program.launches) {
    first_key_.push_back(keys_);
    keys_ += launch.streams.size();
  }
  const auto bytes = static_cast<int64_t>(sizeof(Control) + keys_ * sizeof(uint64_t));
  control_ = cuda::allocate(bytes, "the numbers of a step");
  staged_ = cuda::allocate_host(bytes);
}

int CudaExecutor::find(BufferRole role, const std::string& name) const {
  const std::vector<ExecutableBuffer>& buffers = program().buffers;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].role == role && buffers[i].name == name) return static_cast<int>(i);
  return -1;
}

void CudaExecutor::set(uint32_t buffer, const HostArray& array) {
  const ExecutableBuffer& b = program().buffers[buffer];
  EINC_CHECK(array.shape == b.shape && array.dtype == b.dtype, "'{}' is set to another dtype or shape", b.name);
  EINC_CUDA(cuMemcpyHtoDAsync_v2, addresses_[buffer], array.bytes.data(), array.bytes.size(), stream_.get());
  EINC_CUDA(cuStreamSynchronize, stream_.get());
}

HostArray CudaExecutor::get(uint32_t buffer) const {
  const ExecutableBuffer& b = program().buffers[buffer];
  HostArray array{b.dtype, b.shape, std::vector<std::byte>(static_cast<size_t>(b.bytes))};
  EINC_CUDA(cuMemcpyDtoHAsync_v2, array.bytes.data(), addresses_[buffer], array.bytes.size(), stream_.get());
  EINC_CUDA(cuStreamSynchronize, stream_.get());
  return array;
}

void CudaExecutor::upload_control(uint64_t seed, uint64_t step) {
  Control control;
  control.step = step;
  auto* staged = static_cast<std::byte*>(staged_.get());
  std::memcpy(staged, &control, sizeof control);
  uint64_t* key = reinterpret_cast<uint64_t*>(staged + sizeof control);
  for (const Launch& launch : program().launches)
    for (const std::string& name : launch.streams) {
      const PhiloxKey words = random_key(seed, name);
      *key++ = uint64_t{words[1]} << 32 | words[0];
    }
  EINC_CUDA(cuMemcpyHtoDAsync_v2, control_.get(), staged, sizeof control + keys_ * sizeof(uint64_t), stream_.get());
}

void CudaExecutor::launch(size_t index) {
  const Launch& launch = program().launches[index];
  const CudaCall& call = executable_.calls[index];
  std::vector<uint64_t> pointers;
  for (const uint32_t b : launch.buffers) pointers.push_back(addresses_[b]);
  pointers.push_back(control_.get() + offsetof(Control, step));
  pointers.push_back(control_.get() + sizeof(Control) + first_key_[index] * sizeof(uint64_t));
  pointers.push_back(control_.get() + offsetof(Control, fault));
  std::vector<void*> arguments;
  for (uint64_t& pointer : pointers) arguments.push_back(&pointer);
  auto number = static_cast<int32_t>(index);
  arguments.push_back(&number);
  const auto [bx, by, bz] = call.grid.blocks;
  const auto [tx, ty, tz] = call.grid.threads;
  cuda::check(cuda::driver().cuLaunchKernel(kernels_.kernel(launch.function), bx, by, bz, tx, ty, tz, call.grid.shared_bytes, stream_.get(),
                                            arguments.data(), nullptr),
              "cuLaunchKernel", place_of(launch));
}

void CudaExecutor::copy_all(const std::vector<BufferCopy>& copies) {
  for (const BufferCopy& copy : copies)
    EINC_CUDA(cuMemcpyDtoDAsync_v2, addresses_[copy.target], addresses_[copy.value],
              static_cast<size_t>(program().buffers[copy.target].bytes), stream_.get());
}

void CudaExecutor::run(uint64_t seed, uint64_t step) {
  cuda::Gpu::get().make_current();
  upload_control(seed, step);
  copy_all(program().snapshots);
  for (size_t l = 0; l < program().launches.size(); ++l) launch(l);
  copy_all(program().copies);
  EINC_CUDA(cuMemcpyDtoHAsync_v2, staged_.get(), control_.get(), sizeof(Control), stream_.get());
  EINC_CUDA(cuStreamSynchronize, stream_.get());
  report_fault();
}

void CudaExecutor::report_fault() {
  Control control;
  std::memcpy(&control, staged_.get(), sizeof control);
  if (control.fault.first.launch >= 0) throw_index_fault(program(), control.fault.first);
}

}  // namespace einc
