// SPDX-License-Identifier: Apache-2.0
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
#include "runtime/executor/each_iterated.h"
#include "runtime/executor/index_fault.h"
#include "runtime/executor/initialize.h"

namespace einc {
namespace {

using cuda::OwnedStream;

// Every launch is waited for, so that a failure names it: slow.
bool is_blocking() {
  const char* value = std::getenv("EINC_CUDA_BLOCKING");
  return value && *value && std::strcmp(value, "0") != 0;
}

CudaPlace own_place(const CudaExecutable& executable) {
  const cuda::Gpu& gpu = cuda::Gpu::current();
  const cuda::GpuScope scope(gpu);
  return {&gpu, std::make_shared<OwnedStream>(cuda::make_stream()),
          std::make_shared<cuda::DeviceMemory>(cuda::allocate(executable.program.memory_bytes, "the program's memory")),
          gemm_workspace(executable.workspace_bytes)};
}

}  // namespace

std::shared_ptr<const cuda::DeviceMemory> gemm_workspace(int64_t bytes) {
  return bytes == 0 ? nullptr : std::make_shared<const cuda::DeviceMemory>(cuda::allocate(bytes, "the workspace of cuBLASLt"));
}

CudaExecutor::CudaExecutor(const CudaExecutable& executable, const CudaKernels& kernels)
    : CudaExecutor(executable, kernels, own_place(executable)) {
  for (size_t b = 0; b < addresses_.size(); ++b)
    addresses_[b] = place_.memory->get() + static_cast<uint64_t>(executable.program.buffers[b].offset);
}

CudaExecutor::CudaExecutor(const CudaExecutable& executable, const CudaKernels& kernels, CudaPlace place)
    : executable_(executable), kernels_(kernels), place_(std::move(place)) {
  const Executable& program = executable.program;
  EINC_CHECK(executable.calls.size() == program.launches.size(), "{} calls of {} launches", executable.calls.size(),
             program.launches.size());
  const cuda::GpuScope scope(*place_.gpu);
  kernels.prepare(*place_.gpu);
  for (const ExecutableBuffer& b : program.buffers)
    addresses_.push_back(is_source(b.role) ? 0 : place_.memory->get() + static_cast<uint64_t>(b.offset));
  for (const Launch& launch : program.launches) {
    first_key_.push_back(keys_);
    first_number_.push_back(numbers_);
    for_each_iterated(program, launch, [&](const IteratedLaunch& l) { keys_ += l.launch.streams.size(), ++numbers_; });
  }
  find_segments();
  const size_t key_bytes = keys_ * sizeof(uint64_t);
  control_ = cuda::allocate(static_cast<int64_t>(sizeof(Control) + key_bytes), "the numbers of a step");
  staged_ = cuda::allocate_host(static_cast<int64_t>(sizeof(Staged) + number_of_.size() * sizeof(uint64_t) + key_bytes));
  new (staged_.get()) Staged;
}

// The stream is shared with other executors, so that destroying the last handle to it may come too late. A failure was told where somebody
// waited, or is of no interest any more.
CudaExecutor::~CudaExecutor() {
  const cuda::GpuScope scope(*place_.gpu);
  cuda::driver().cuStreamSynchronize(stream());
}

// A look at numbers comes before a launch that stores once they are as they must be, and before those for unbounded updates.
void CudaExecutor::find_segments() {
  const std::vector<Launch>& launches = program().launches;
  const std::vector<CheckedNumber> checks = checked_numbers(program());
  size_t begin = 0;
  for (size_t l = 0; l < launches.size(); ++l) {
    const bool unbounded = launches[l].when == LaunchWhen::unbounded && !unbounded_;
    const bool looks = launches[l].when == LaunchWhen::checked &&
                       std::ranges::any_of(checks, [&](const CheckedNumber& check) { return is_made_within(check, begin, l); });
    if (unbounded) unbounded_ = l;
    if (!unbounded && !looks) continue;
    add_segment(begin, l, checks);
    begin = l;
  }
  add_segment(begin, launches.size(), checks);
}

// By a segment with these launches.
bool CudaExecutor::is_made_within(const CheckedNumber& check, size_t begin, size_t end) const {
  return check.launch >= static_cast<int64_t>(begin) && check.launch < static_cast<int64_t>(end) &&
         program().launches[static_cast<size_t>(check.launch)].when != LaunchWhen::unbounded;
}

// Numbers that checks and bounds are made of, when they are there; the loss whenever somebody waits.
void CudaExecutor::add_segment(size_t begin, size_t end, const std::vector<CheckedNumber>& checks) {
  Segment segment;
  segment.begin = begin, segment.end = end;
  const auto add = [&](uint32_t buffer) {
    number_of_.try_emplace(buffer, number_of_.size());
    if (std::ranges::find(segment.numbers, buffer) == segment.numbers.end()) segment.numbers.push_back(buffer);
  };
  if (program().loss >= 0) add(static_cast<uint32_t>(program().loss));
  for (const CheckedNumber& check : checks)
    if (is_made_within(check, begin, end)) add(check.buffer), segment.checked = true;
  for (const BoundOp& op : program().bounds)
    if (unbounded_ == end && (op.fn == BoundFn::number || op.fn == BoundFn::magnitude)) add(op.buffer);
  segments_.push_back(std::move(segment));
}

int CudaExecutor::find(BufferRole role, const std::string& name) const {
  const std::vector<ExecutableBuffer>& buffers = program().buffers;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].role == role && buffers[i].name == name) return static_cast<int>(i);
  return -1;
}

void CudaExecutor::bind(uint32_t buffer, cuda::DevicePointer memory) {
  if (std::exchange(addresses_[buffer], memory) != memory) {
    for (Segment& segment : segments_) segment.ran = false, segment.graph = {};
    gemms_.clear();
    together_.clear();
    part_of_.clear();
    attention_.reset();
    attention_part_of_.clear();
    table_of_.clear();
  }
}

void CudaExecutor::set(uint32_t buffer, const HostArray& array) {
  const cuda::GpuScope scope(*place_.gpu);
  const ExecutableBuffer& b = program().buffers[buffer];
  EINC_CHECK(array.shape == b.shape && array.dtype == b.dtype, "'{}' is set to another dtype or shape", b.name);
  EINC_CUDA(cuMemcpyHtoDAsync_v2, addresses_[buffer], array.bytes.data(), array.bytes.size(), stream());
  wait();
}

HostArray CudaExecutor::get(uint32_t buffer) {
  const cuda::GpuScope scope(*place_.gpu);
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
  const cuda::GpuScope scope(*place_.gpu);
  cuda::check(cuda::driver().cuStreamSynchronize(stream()), "cuStreamSynchronize",
              fmt::format(", in one of {} launches: EINC_CUDA_BLOCKING=1 tells in which", program().launches.size()));
  check_fault(staged().at_half);
  check_fault(staged().at_end);
}

void CudaExecutor::check_fault(Control& control) {
  const IndexFault fault = std::exchange(control, {}).fault.fault();
  if (fault.launch < 0) return;
  const size_t index = static_cast<size_t>(std::ranges::upper_bound(first_number_, fault.launch) - first_number_.begin()) - 1;
  int32_t number = first_number_[index];
  for_each_iterated(program(), program().launches[index], [&](const IteratedLaunch& l) {
    if (number++ == fault.launch) throw_index_fault(l.launch, fault, l.iterations);
  });
}

HostArray CudaExecutor::number(uint32_t buffer) const {
  const ExecutableBuffer& b = program().buffers[buffer];
  const std::byte* at = staged_number(number_of_.at(buffer));
  return {b.dtype, b.shape, std::vector<std::byte>(at, at + b.bytes)};
}

HostArray CudaExecutor::loss() const { return number(static_cast<uint32_t>(program().loss)); }

double CudaExecutor::read(uint32_t buffer) {
  const HostArray value = number_of_.count(buffer) > 0 ? number(buffer) : get(buffer);
  return TensorView(value.dtype, value.shape, value.bytes.data()).to_doubles().front();
}

void CudaExecutor::read_control(Control& to) { EINC_CUDA(cuMemcpyDtoHAsync_v2, &to, control_.get(), sizeof(Control), stream()); }

void CudaExecutor::read_numbers(const std::vector<uint32_t>& buffers) {
  for (const uint32_t buffer : buffers)
    EINC_CUDA(cuMemcpyDtoHAsync_v2, staged_number(number_of_.at(buffer)), addresses_[buffer],
              static_cast<size_t>(program().buffers[buffer].bytes), stream());
}

// Before anything of a run is enqueued; what was staged before has been read, since every run waits for its first segment.
void CudaExecutor::prepare(uint64_t seed, uint64_t step) {
  staged().before.step = step;
  plan_gemms();
  upload_tables();
  plan_attention();
  if (seed_ == seed) return;
  seed_ = seed;
  uint64_t* key = staged_keys();
  for (const Launch& launch : program().launches)
    for_each_iterated(program(), launch, [&](const IteratedLaunch& l) {
      for (const std::string& name : l.launch.streams) {
        const PhiloxKey words = random_key(seed, name + stream_suffix(l.iterations));
        *key++ = uint64_t{words[1]} << 32 | words[0];
      }
    });
}

void CudaExecutor::upload_control(const Control& before) {
  EINC_CUDA(cuMemcpyHtoDAsync_v2, control_.get(), &before, sizeof(Control), stream());
  if (keys_ > 0) EINC_CUDA(cuMemcpyHtoDAsync_v2, control_.get() + sizeof(Control), staged_keys(), keys_ * sizeof(uint64_t), stream());
}

// The addresses of all launches that run together, one row of each after the other.
void CudaExecutor::upload_tables() {
  if (executable_.by_table.empty() || !table_of_.empty()) return;
  std::vector<uint64_t> rows;
  std::map<size_t, size_t> begins;
  for (size_t l = 0; l < executable_.calls.size(); ++l) {
    const CudaCall& call = executable_.calls[l];
    if (call.gemm || call.done_before || program().launches[l].function == kNoFunction ||
        !executable_.by_table[program().launches[l].function])
      continue;
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

void CudaExecutor::call_kernel(size_t index, uint32_t function, const CudaGrid& grid, std::vector<uint64_t> pointers) {
  call_kernel(program().launches[index], {first_key_[index], first_number_[index]}, function, grid, std::move(pointers));
}

// A function on buffers, or on a table of them, in the place of a launch.
void CudaExecutor::call_kernel(const Launch& launch, const LaunchNumbers& numbers, uint32_t function, const CudaGrid& grid,
                               std::vector<uint64_t> pointers) {
  pointers.push_back(control_.get() + offsetof(Control, step));
  pointers.push_back(control_.get() + sizeof(Control) + numbers.key * sizeof(uint64_t));
  pointers.push_back(control_.get() + offsetof(Control, fault));
  std::vector<void*> arguments;
  for (uint64_t& pointer : pointers) arguments.push_back(&pointer);
  int32_t number = numbers.number;
  arguments.push_back(&number);
  const auto [bx, by, bz] = grid.blocks;
  const auto [tx, ty, tz] = grid.threads;
  cuda::check(cuda::driver().cuLaunchKernel(kernels_.kernel(function), bx, by, bz, tx, ty, tz, grid.shared_bytes, stream(),
                                            arguments.data(), nullptr),
              "cuLaunchKernel", place_of(launch));
}

void CudaExecutor::copy_all(const std::vector<BufferCopy>& copies) {
  for (const BufferCopy& copy : copies)
    EINC_CUDA(cuMemcpyDtoDAsync_v2, addresses_[copy.target], addresses_[copy.value],
              static_cast<size_t>(program().buffers[copy.target].bytes), stream());
}

void CudaExecutor::enqueue(const Segment& segment) {
  if (segment.begin == 0) {
    upload_control();
    copy_all(program().snapshots);
  }
  for (size_t l = segment.begin; l < segment.end; ++l) {
    if (program().launches[l].when == LaunchWhen::unbounded) continue;
    launch(l);
    if (is_blocking()) cuda::check(cuda::driver().cuStreamSynchronize(stream()), "cuStreamSynchronize", place_of(program().launches[l]));
  }
  read_numbers(segment.numbers);
  read_control(is_last(segment) ? staged().at_end : staged().at_half);
}

// The first time launch by launch: what the driver and cuBLASLt set up when first asked for something may not be set up during a capture.
void CudaExecutor::play(Segment& segment) {
  if (is_blocking() || !std::exchange(segment.ran, true)) return enqueue(segment);
  if (!segment.graph) {
    cuda::OwnedGraph captured;
    EINC_CUDA(cuStreamBeginCapture_v2, stream(), cuda::kCaptureThreadLocal);
    try {
      enqueue(segment);
    } catch (...) {
      cuda::driver().cuStreamEndCapture(stream(), captured.out());
      throw;
    }
    EINC_CUDA(cuStreamEndCapture, stream(), captured.out());
    EINC_CUDA(cuGraphInstantiateWithFlags, segment.graph.out(), captured.get(), 0);
  }
  EINC_CUDA(cuGraphLaunch, segment.graph.get(), stream());
}

void CudaExecutor::run_unbounded() {
  for (size_t l = *unbounded_; l < program().launches.size(); ++l)
    if (program().launches[l].when == LaunchWhen::unbounded) launch(l);
  read_control(staged().at_half);
  wait();
}

void CudaExecutor::run(uint64_t seed, uint64_t step) {
  const cuda::GpuScope scope(*place_.gpu);
  prepare(seed, step);
  for (Segment& segment : segments_) {
    play(segment);
    if (!is_last(segment) || segments_.size() == 1) wait();
  }
  copy_all(program().copies);
}

NonFinite CudaExecutor::run_while_finite(uint64_t seed, uint64_t step, StepGuard& guard) {
  const auto reads = [&](uint32_t buffer) { return read(buffer); };
  const cuda::GpuScope scope(*place_.gpu);
  guard.begin();
  prepare(seed, step);
  for (Segment& segment : segments_) {
    play(segment);
    if (is_last(segment) && segments_.size() > 1 && !segment.checked) break;
    wait();
    if (const NonFinite fault = guard.look(segment.end, reads); fault != NonFinite::nothing) return fault;
    if (unbounded_ != segment.end || guard.is_bounded(reads)) continue;
    run_unbounded();
    if (const NonFinite fault = guard.look(program().launches.size(), reads); fault != NonFinite::nothing) return fault;
  }
  copy_all(program().copies);
  guard.end(reads);
  return NonFinite::nothing;
}

void CudaExecutor::run_while(uint64_t seed, uint64_t step, const std::function<bool(size_t launch)>& goes_on, Products products) {
  const cuda::GpuScope scope(*place_.gpu);
  prepare(seed, step);
  upload_control();
  copy_all(program().snapshots);
  for (size_t l = 0; l < program().launches.size(); ++l) {
    launch(l, products);
    read_control(staged().at_half);
    cuda::check(cuda::driver().cuStreamSynchronize(stream()), "cuStreamSynchronize", place_of(program().launches[l]));
    check_fault(staged().at_half);
    if (!goes_on(l)) return;
  }
  copy_all(program().copies);
  wait();
}

std::vector<LaunchSpan> CudaExecutor::run_traced(uint64_t seed, uint64_t step) {
  const cuda::GpuScope scope(*place_.gpu);
  prepare(seed, step);
  upload_control();
  copy_all(program().snapshots);
  std::vector<cuda::OwnedEvent> events(program().launches.size() + 1);
  for (size_t l = 0; l < events.size(); ++l) {
    EINC_CUDA(cuEventCreate, events[l].out(), 0);
    if (l > 0 && program().launches[l - 1].when != LaunchWhen::unbounded) launch(l - 1);
    EINC_CUDA(cuEventRecord, events[l].get(), stream());
  }
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
