#include "runtime/cuda/cuda_executor.h"

#include <einc/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/base/random.h"
#include "runtime/cuda/launch_place.h"
#include "runtime/executor/index_fault.h"
#include "runtime/executor/initialize.h"

namespace einc {
namespace {

using cuda::DeviceMemory;
using cuda::OwnedStream;

// Every launch is waited for, so that a failure names it: slow.
bool is_blocking() {
  const char* value = std::getenv("EINC_CUDA_BLOCKING");
  return value && *value && std::strcmp(value, "0") != 0;
}

size_t split_of(const Executable& program, const std::vector<CheckedNumber>& checked) {
  if (checked.empty()) return program.launches.size();
  size_t split = 0;
  for (const CheckedNumber& number : checked) split = std::max(split, static_cast<size_t>(number.launch + 1));
  return split;
}

CudaPlace own_place(const CudaExecutable& executable) {
  cuda::Gpu::get().make_current();
  return {std::make_shared<OwnedStream>(cuda::make_stream()),
          std::make_shared<DeviceMemory>(cuda::allocate(executable.program.memory_bytes, "the program's memory")),
          gemm_workspace(executable.workspace_bytes)};
}

}  // namespace

std::shared_ptr<const DeviceMemory> gemm_workspace(int64_t bytes) {
  return bytes == 0 ? nullptr : std::make_shared<const DeviceMemory>(cuda::allocate(bytes, "the workspace of cuBLASLt"));
}

CudaExecutor::CudaExecutor(const CudaExecutable& executable, const CudaKernels& kernels)
    : CudaExecutor(executable, kernels, own_place(executable), checked_numbers({}, Part::forward, executable.program)) {
  for (size_t b = 0; b < addresses_.size(); ++b)
    addresses_[b] = place_.memory->get() + static_cast<uint64_t>(executable.program.buffers[b].offset);
}

CudaExecutor::CudaExecutor(const CudaExecutable& executable, const CudaKernels& kernels, CudaPlace place,
                           std::vector<CheckedNumber> checked)
    : executable_(executable),
      kernels_(kernels),
      checked_(std::move(checked)),
      split_(split_of(executable.program, checked_)),
      place_(std::move(place)) {
  const Executable& program = executable.program;
  EINC_CHECK(executable.calls.size() == program.launches.size(), "{} calls of {} launches", executable.calls.size(),
             program.launches.size());
  cuda::Gpu::get().make_current();
  for (const ExecutableBuffer& b : program.buffers)
    addresses_.push_back(is_source(b.role) ? 0 : place_.memory->get() + static_cast<uint64_t>(b.offset));
  for (const Launch& launch : program.launches) {
    first_key_.push_back(keys_);
    keys_ += launch.streams.size();
  }
  const size_t key_bytes = keys_ * sizeof(uint64_t);
  control_ = cuda::allocate(static_cast<int64_t>(sizeof(Control) + key_bytes), "the numbers of a step");
  staged_ = cuda::allocate_host(static_cast<int64_t>(sizeof(Staged) + checked_.size() * sizeof(uint64_t) + key_bytes));
  new (staged_.get()) Staged;
}

// The stream is shared with other executors, so that destroying the last handle to it may come too late. A failure was told where somebody
// waited, or is of no interest any more.
CudaExecutor::~CudaExecutor() {
  cuda::Gpu::enter();
  cuda::driver().cuStreamSynchronize(stream());
}

int CudaExecutor::find(BufferRole role, const std::string& name) const {
  const std::vector<ExecutableBuffer>& buffers = program().buffers;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].role == role && buffers[i].name == name) return static_cast<int>(i);
  return -1;
}

void CudaExecutor::bind(uint32_t buffer, cuda::DevicePointer memory) {
  if (std::exchange(addresses_[buffer], memory) != memory) {
    graphs_ = {};
    ran_ = {};
    gemms_.clear();
    together_.clear();
    part_of_.clear();
    attention_.reset();
    attention_part_of_.clear();
    table_of_.clear();
  }
}

void CudaExecutor::set(uint32_t buffer, const HostArray& array) {
  cuda::Gpu::get().make_current();
  const ExecutableBuffer& b = program().buffers[buffer];
  EINC_CHECK(array.shape == b.shape && array.dtype == b.dtype, "'{}' is set to another dtype or shape", b.name);
  EINC_CUDA(cuMemcpyHtoDAsync_v2, addresses_[buffer], array.bytes.data(), array.bytes.size(), stream());
  wait();
}

HostArray CudaExecutor::get(uint32_t buffer) {
  cuda::Gpu::get().make_current();
  const ExecutableBuffer& b = program().buffers[buffer];
  HostArray array{b.dtype, b.shape, std::vector<std::byte>(static_cast<size_t>(b.bytes))};
  EINC_CUDA(cuMemcpyDtoHAsync_v2, array.bytes.data(), addresses_[buffer], array.bytes.size(), stream());
  wait();
  return array;
}

void CudaExecutor::initialize(ThreadPool& pool, uint64_t seed) {
  for (uint32_t i = 0; i < addresses_.size(); ++i) {
    const ExecutableBuffer& b = program().buffers[i];
    if (b.role != BufferRole::param && b.role != BufferRole::state) continue;
    HostArray array{b.dtype, b.shape, std::vector<std::byte>(static_cast<size_t>(b.bytes))};
    einc::initialize(pool, b.init, b.init_arguments, seed, b.name, b.dtype, b.bytes / bytes_of(b.dtype), array.bytes.data());
    set(i, array);
  }
}

void CudaExecutor::wait() {
  cuda::check(cuda::driver().cuStreamSynchronize(stream()), "cuStreamSynchronize",
              fmt::format(", in one of {} launches: EINC_CUDA_BLOCKING=1 tells in which", program().launches.size()));
  check_fault(staged().at_half);
  check_fault(staged().at_end);
}

void CudaExecutor::check_fault(Control& control) {
  const IndexFault fault = std::exchange(control, {}).fault.first;
  if (fault.launch >= 0) throw_index_fault(program(), fault);
}

HostArray CudaExecutor::number(size_t i) const {
  const ExecutableBuffer& b = program().buffers[checked_[i].buffer];
  return {b.dtype, b.shape, std::vector<std::byte>(staged_number(i), staged_number(i) + b.bytes)};
}

HostArray CudaExecutor::loss() const { return number(0); }

NonFinite CudaExecutor::not_finite() const {
  for (size_t i = 0; i < checked_.size(); ++i) {
    const HostArray value = number(i);
    if (!std::isfinite(TensorView(value.dtype, value.shape, value.bytes.data()).to_doubles()[0])) return checked_[i].means;
  }
  return NonFinite::nothing;
}

void CudaExecutor::read_control(Control& to) { EINC_CUDA(cuMemcpyDtoHAsync_v2, &to, control_.get(), sizeof(Control), stream()); }

void CudaExecutor::read_numbers() {
  for (size_t i = 0; i < checked_.size(); ++i)
    EINC_CUDA(cuMemcpyDtoHAsync_v2, staged_number(i), addresses_[checked_[i].buffer],
              static_cast<size_t>(program().buffers[checked_[i].buffer].bytes), stream());
}

// Before anything of a run is enqueued; what was staged before has been read, since every run waits for its first half.
void CudaExecutor::prepare(uint64_t seed, uint64_t step) {
  cuda::Gpu::get().make_current();
  staged().before.step = step;
  plan_gemms();
  upload_tables();
  plan_attention();
  if (seed_ == seed) return;
  seed_ = seed;
  uint64_t* key = staged_keys();
  for (const Launch& launch : program().launches)
    for (const std::string& name : launch.streams) {
      const PhiloxKey words = random_key(seed, name);
      *key++ = uint64_t{words[1]} << 32 | words[0];
    }
}

void CudaExecutor::upload_control() {
  EINC_CUDA(cuMemcpyHtoDAsync_v2, control_.get(), &staged().before, sizeof(Control), stream());
  if (keys_ > 0) EINC_CUDA(cuMemcpyHtoDAsync_v2, control_.get() + sizeof(Control), staged_keys(), keys_ * sizeof(uint64_t), stream());
}

// The addresses of all launches that run together, one row of each after the other.
void CudaExecutor::upload_tables() {
  if (executable_.by_table.empty() || !table_of_.empty()) return;
  std::vector<uint64_t> rows;
  std::map<size_t, size_t> begins;
  for (size_t l = 0; l < executable_.calls.size(); ++l) {
    const CudaCall& call = executable_.calls[l];
    if (call.gemm || call.done_before || !executable_.by_table[program().launches[l].function]) continue;
    begins[l] = rows.size();
    const auto add = [&](size_t launch) {
      for (const uint32_t b : program().launches[launch].buffers) rows.push_back(addresses_[b]);
    };
    add(l);
    for (const uint32_t other : call.together) add(other);
  }
  if (begins.empty()) return;
  const size_t bytes = rows.size() * sizeof(uint64_t);
  if (tables_.get() == 0) tables_ = cuda::allocate(static_cast<int64_t>(bytes), "the tables of addresses");
  EINC_CUDA(cuMemcpyHtoDAsync_v2, tables_.get(), rows.data(), bytes, stream());
  EINC_CUDA(cuStreamSynchronize, stream());
  EINC_CUDA(cuStreamSynchronize, stream());
  for (const auto& [launch, begin] : begins) table_of_[launch] = tables_.get() + begin * sizeof(uint64_t);
}

void CudaExecutor::launch_kernel(size_t index) {
  const Launch& launch = program().launches[index];
  std::vector<uint64_t> pointers;
  if (const auto table = table_of_.find(index); table != table_of_.end())
    pointers.push_back(table->second);
  else
    for (const uint32_t b : launch.buffers) pointers.push_back(addresses_[b]);
  CudaGrid grid = executable_.calls[index].grid;
  grid.blocks[1] *= static_cast<uint32_t>(executable_.calls[index].together.size() + 1);
  call_kernel(index, launch.function, grid, std::move(pointers));
}

// A function on buffers, or on a table of them, in the place of a launch.
void CudaExecutor::call_kernel(size_t index, uint32_t function, const CudaGrid& grid, std::vector<uint64_t> pointers) {
  pointers.push_back(control_.get() + offsetof(Control, step));
  pointers.push_back(control_.get() + sizeof(Control) + first_key_[index] * sizeof(uint64_t));
  pointers.push_back(control_.get() + offsetof(Control, fault));
  std::vector<void*> arguments;
  for (uint64_t& pointer : pointers) arguments.push_back(&pointer);
  auto number = static_cast<int32_t>(index);
  arguments.push_back(&number);
  const auto [bx, by, bz] = grid.blocks;
  const auto [tx, ty, tz] = grid.threads;
  cuda::check(cuda::driver().cuLaunchKernel(kernels_.kernel(function), bx, by, bz, tx, ty, tz, grid.shared_bytes, stream(),
                                            arguments.data(), nullptr),
              "cuLaunchKernel", place_of(program().launches[index]));
}

void CudaExecutor::copy_all(const std::vector<BufferCopy>& copies) {
  for (const BufferCopy& copy : copies)
    EINC_CUDA(cuMemcpyDtoDAsync_v2, addresses_[copy.target], addresses_[copy.value],
              static_cast<size_t>(program().buffers[copy.target].bytes), stream());
}

void CudaExecutor::enqueue(Half half) {
  if (half == Half::first) {
    upload_control();
    copy_all(program().snapshots);
    for (size_t l = 0; l < split_; ++l) launch(l);
    read_numbers();
    read_control(staged().at_half);
  } else {
    for (size_t l = split_; l < program().launches.size(); ++l) launch(l);
    copy_all(program().copies);
    read_control(staged().at_end);
  }
}

// The first time launch by launch: what the driver and cuBLASLt set up when first asked for something may not be set up during a capture.
void CudaExecutor::play(Half half) {
  if (!std::exchange(ran_[static_cast<size_t>(half)], true)) return enqueue(half);
  cuda::OwnedGraphExec& graph = graphs_[static_cast<size_t>(half)];
  if (!graph) {
    cuda::OwnedGraph captured;
    EINC_CUDA(cuStreamBeginCapture_v2, stream(), cuda::kCaptureThreadLocal);
    try {
      enqueue(half);
    } catch (...) {
      cuda::driver().cuStreamEndCapture(stream(), captured.out());
      throw;
    }
    EINC_CUDA(cuStreamEndCapture, stream(), captured.out());
    EINC_CUDA(cuGraphInstantiateWithFlags, graph.out(), captured.get(), 0);
  }
  EINC_CUDA(cuGraphLaunch, graph.get(), stream());
}

void CudaExecutor::run(uint64_t seed, uint64_t step) {
  if (is_blocking()) return run_while(seed, step, [](size_t) { return true; });
  prepare(seed, step);
  play(Half::first);
  wait();
  if (split_ < program().launches.size() || !program().copies.empty()) play(Half::second);
}

NonFinite CudaExecutor::run_while_finite(uint64_t seed, uint64_t step) {
  NonFinite fault = NonFinite::nothing;
  if (is_blocking()) {
    run_while(seed, step, [&](size_t launch) {
      if (launch + 1 == split_) fault = not_finite();
      return fault == NonFinite::nothing;
    });
    return fault;
  }
  prepare(seed, step);
  play(Half::first);
  wait();
  fault = not_finite();
  if (fault == NonFinite::nothing) play(Half::second);
  return fault;
}

void CudaExecutor::run_while(uint64_t seed, uint64_t step, const std::function<bool(size_t launch)>& goes_on, Products products) {
  prepare(seed, step);
  upload_control();
  copy_all(program().snapshots);
  for (size_t l = 0; l < program().launches.size(); ++l) {
    launch(l, products);
    read_control(staged().at_half);
    if (l + 1 == split_) read_numbers();
    cuda::check(cuda::driver().cuStreamSynchronize(stream()), "cuStreamSynchronize", place_of(program().launches[l]));
    check_fault(staged().at_half);
    if (!goes_on(l)) return;
  }
  copy_all(program().copies);
  wait();
}

std::vector<LaunchSpan> CudaExecutor::run_traced(uint64_t seed, uint64_t step) {
  prepare(seed, step);
  upload_control();
  copy_all(program().snapshots);
  std::vector<cuda::OwnedEvent> events(program().launches.size() + 1);
  for (size_t l = 0; l < events.size(); ++l) {
    EINC_CUDA(cuEventCreate, events[l].out(), 0);
    if (l > 0) launch(l - 1);
    EINC_CUDA(cuEventRecord, events[l].get(), stream());
  }
  read_numbers();
  copy_all(program().copies);
  read_control(staged().at_end);
  wait();
  const auto since = [&](size_t event) {
    float milliseconds = 0;
    EINC_CUDA(cuEventElapsedTime, &milliseconds, events[0].get(), events[event].get());
    return static_cast<double>(milliseconds) / 1e3;
  };
  std::vector<LaunchSpan> spans;
  for (size_t l = 0; l + 1 < events.size(); ++l)
    spans.push_back({static_cast<uint32_t>(l), 0, l == 0 ? 0 : spans.back().end, since(l + 1)});
  for (const auto& [l, f] : part_of_) {  // the time is the product's, wherever it ran; its other parts take none
    const CudaFusedProduct& fused = executable_.fused[f];
    if (l != fused.at) spans[l].end = spans[l].begin;
    if (l == fused.product) std::swap(spans[l].launch, spans[fused.at].launch);
  }
  for (const auto& [l, a] : attention_part_of_)
    if (l != executable_.attention[a].at()) spans[l].end = spans[l].begin;
  return spans;
}

}  // namespace einc
