// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/executor.h"

#include <einc/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <chrono>
#include <cstring>

#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/base/random.h"
#include "runtime/executor/index_fault.h"
#include "runtime/executor/initialize.h"

namespace einc {

// A hostile program's sizes need not fit 64 bits together; then one of them alone is more than any machine has.
int64_t memory_of(const Executable& program, Sources sources, int threads) {
  int64_t bytes = (sources == Sources::own ? program.memory_bytes : program.own_bytes) + threads * program.scratch_bytes;
  for (const ExecutableBuffer& b : program.buffers)
    if (b.bytes > bytes && (sources == Sources::own || !is_source(b.role))) bytes = b.bytes;
  return bytes;
}

Executor::Executor(const Executable& program, std::vector<KernelFunction*> functions, int threads)
    : Executor(program, std::move(functions), std::make_shared<ThreadPool>(threads), Sources::own) {}

Executor::Executor(const Executable& program, std::vector<KernelFunction*> functions, std::shared_ptr<ThreadPool> pool, Sources sources)
    : Executor(program, std::move(functions), pool, sources, std::make_shared<Mapping>(memory_of(program, sources, pool->size()))) {}

Executor::Executor(const Executable& program, std::vector<KernelFunction*> functions, std::shared_ptr<ThreadPool> pool, Sources sources,
                   std::shared_ptr<Mapping> memory)
    : program_(program),
      functions_(std::move(functions)),
      pool_(std::move(pool)),
      memory_(std::move(memory)),
      scratch_(sources == Sources::own ? program.memory_bytes : program.own_bytes),
      faults_(static_cast<size_t>(pool_->size())) {
  for (const ExecutableBuffer& b : program.buffers)
    buffers_.push_back(sources == Sources::bound && is_source(b.role) ? nullptr : memory_->base() + b.offset);
}

void Executor::initialize(uint64_t seed) {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const ExecutableBuffer& b = program_.buffers[i];
    if (b.role == BufferRole::param || b.role == BufferRole::state)
      einc::initialize(*pool_, b.init, b.init_arguments, seed, b.name, b.dtype, b.bytes / bytes_of(b.dtype), buffers_[i]);
  }
}

std::span<std::byte> Executor::bytes(uint32_t buffer) { return {buffers_[buffer], static_cast<size_t>(program_.buffers[buffer].bytes)}; }

int Executor::find(BufferRole role, const std::string& name) const {
  for (size_t i = 0; i < program_.buffers.size(); ++i)
    if (program_.buffers[i].role == role && program_.buffers[i].name == name) return static_cast<int>(i);
  return -1;
}

void Executor::set(uint32_t buffer, const HostArray& array) {
  const ExecutableBuffer& b = program_.buffers[buffer];
  if (array.shape != b.shape || array.dtype != b.dtype)
    throw RuntimeFailure(FailureKind::data, fmt::format("'{}' is {}[{}], but given as {}[{}]", b.name, to_string(b.dtype),
                                                        fmt::join(b.shape, " "), to_string(array.dtype), fmt::join(array.shape, " ")));
  std::memcpy(buffers_[buffer], array.bytes.data(), array.bytes.size());
}

HostArray Executor::get(uint32_t buffer) const {
  const ExecutableBuffer& b = program_.buffers[buffer];
  return {b.dtype, b.shape, std::vector<std::byte>(buffers_[buffer], buffers_[buffer] + b.bytes)};
}

template <class Wrap>
void Executor::launch(size_t index, uint64_t seed, uint64_t step, Wrap wrap) {
  launch({program_, buffers_, {}}, index, seed, step, wrap);
}

template <class Wrap>
void Executor::launch(const Running& running, size_t index, uint64_t seed, uint64_t step, Wrap wrap) {
  const Launch& launch = running.program.launches[index];
  if (launch.scan >= 0) return run_scan(running, launch, seed, step, wrap);
  boost::container::small_vector<void*, 16> pointers;
  for (uint32_t b : launch.buffers) pointers.push_back(running.buffers[b]);
  boost::container::small_vector<uint64_t, 2> keys;
  for (const std::string& stream : launch.streams) {
    const PhiloxKey key = random_key(seed, stream + stream_suffix(running.iterations));
    keys.push_back(uint64_t{key[1]} << 32 | key[0]);
  }
  if (!launch.sites.empty()) std::fill(faults_.begin(), faults_.end(), IndexFault{});
  KernelFunction* function = functions_[launch.function];
  const auto work = [&](int thread, int64_t begin, int64_t end) {
    const KernelArguments arguments{pointers.data(),
                                    keys.data(),
                                    step,
                                    &faults_[static_cast<size_t>(thread)],
                                    static_cast<int32_t>(index),
                                    memory_->base() + scratch_ + thread * program_.scratch_bytes};
    wrap(thread, [&] { function(&arguments, begin, end); });
  };
  if (launch.alone)
    work(0, 0, launch.domain);
  else
    pool_->run(launch.domain, work);
  if (!launch.sites.empty()) report_faults(running);
}

// The body's launches once for each iteration, its inputs and states where the launch's buffers lie: no slice is copied.
template <class Wrap>
void Executor::run_scan(const Running& outside, const Launch& launch, uint64_t seed, uint64_t step, Wrap wrap) {
  const ScanProgram& scan = outside.program.scans[static_cast<size_t>(launch.scan)];
  const auto place = [&](uint32_t buffer) { return outside.buffers[launch.buffers[buffer]]; };
  std::vector<std::byte*> buffers;
  for (const ExecutableBuffer& b : scan.body.buffers) buffers.push_back(is_source(b.role) ? nullptr : place(scan.workspace) + b.offset);
  const auto move_to = [&](int64_t t) {
    for (const ScanBuffer& b : scan.buffers) buffers[b.buffer] = place(b.place) + b.offset + t * b.step;
  };
  move_to(0);
  for (const ScanBuffer& b : scan.initial)
    std::memcpy(buffers[b.buffer], place(b.place), static_cast<size_t>(scan.body.buffers[b.buffer].bytes));
  Running running{scan.body, buffers, {}};
  const int64_t count = iterations_of(outside.iterations, scan.length, scan.all_pieces);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t t = scan.reversed ? count - 1 - i : i;
    move_to(t);
    running.iterations = iteration_inside(outside.iterations, t, scan.length, scan.all_pieces);
    copy_all(running, scan.body.snapshots);
    for (size_t l = 0; l < scan.body.launches.size(); ++l) this->launch(running, l, seed, step, wrap);
    copy_all(running, scan.body.copies);
  }
}

void Executor::run(uint64_t seed, uint64_t step) {
  copy_all(program_.snapshots);
  for (size_t l = 0; l < program_.launches.size(); ++l)
    if (program_.launches[l].when != LaunchWhen::unbounded) launch(l, seed, step, [](int, const auto& work) { work(); });
  copy_all(program_.copies);
}

void Executor::run_launches(size_t first, size_t last, uint64_t seed, uint64_t step) {
  EINC_CHECK(program_.snapshots.empty(), "a run in parts that takes snapshots");
  for (size_t l = first; l < last; ++l)
    if (!is_collective(program_.launches[l])) launch(l, seed, step, [](int, const auto& work) { work(); });
}

void Executor::store_copies(size_t first, size_t last) {
  for (const BufferCopy& copy : program_.copies)
    if (const size_t made = last_launch_of(program_, copy.value); first <= made && made < last) copy_all({copy});
}

NonFinite Executor::fault_before(size_t launch) const {
  return einc::fault_before(program_, launch, [this](uint32_t buffer) { return number(buffer); });
}

double Executor::number(uint32_t buffer) const {
  const ExecutableBuffer& b = program_.buffers[buffer];
  return TensorView(b.dtype, b.shape, buffers_[buffer]).to_doubles().front();
}

NonFinite Executor::run_while_finite(uint64_t seed, uint64_t step, StepGuard& guard) {
  const auto read = [&](uint32_t buffer) { return number(buffer); };
  guard.begin();
  copy_all(program_.snapshots);
  for (size_t l = 0; l < program_.launches.size(); ++l) {
    const LaunchWhen when = program_.launches[l].when;
    if (when == LaunchWhen::unbounded && guard.is_bounded(read)) continue;
    if (when == LaunchWhen::checked)
      if (const NonFinite fault = guard.look(l, read); fault != NonFinite::nothing) return fault;
    launch(l, seed, step, [](int, const auto& work) { work(); });
  }
  if (const NonFinite fault = guard.look(program_.launches.size(), read); fault != NonFinite::nothing) return fault;
  copy_all(program_.copies);
  guard.end(read);
  return NonFinite::nothing;
}

bool Executor::run_while(uint64_t seed, uint64_t step, const std::function<bool(size_t launch)>& goes_on) {
  copy_all(program_.snapshots);
  for (size_t l = 0; l < program_.launches.size(); ++l) {
    launch(l, seed, step, [](int, const auto& work) { work(); });
    if (!goes_on(l)) return false;
  }
  copy_all(program_.copies);
  return true;
}

std::vector<LaunchSpan> Executor::run_traced(uint64_t seed, uint64_t step) {
  const auto threads = static_cast<size_t>(pool_->size());
  std::vector<LaunchSpan> spans(program_.launches.size() * threads);
  const auto start = std::chrono::steady_clock::now();
  const auto since = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  copy_all(program_.snapshots);
  for (size_t l = 0; l < program_.launches.size(); ++l) {
    if (program_.launches[l].when == LaunchWhen::unbounded) continue;
    launch(l, seed, step, [&](int thread, const auto& work) {
      const double begin = since();
      work();
      LaunchSpan& span = spans[l * threads + static_cast<size_t>(thread)];
      span = {static_cast<uint32_t>(l), thread, span.end == 0 ? begin : span.begin, since()};  // of a scan: from first to last
    });
  }
  copy_all(program_.copies);
  std::erase_if(spans, [](const LaunchSpan& span) { return span.end == 0; });  // threads without a part
  return spans;
}

void Executor::copy_all(const Running& running, const std::vector<BufferCopy>& copies) {
  for (const BufferCopy& copy : copies)
    std::memcpy(running.buffers[copy.target], running.buffers[copy.value], static_cast<size_t>(running.program.buffers[copy.target].bytes));
}

void Executor::report_faults(const Running& running) {
  const IndexFault* first = nullptr;
  for (const IndexFault& f : faults_)
    if (f.launch >= 0 && (!first || f.place < first->place)) first = &f;
  if (!first) return;
  throw_index_fault(running.program.launches[static_cast<size_t>(first->launch)], *first, running.iterations);
}

}  // namespace einc

void einc::einc_index_fault(const KernelArguments* arguments, int32_t site, int64_t place, int64_t value) {
  IndexFault& fault = *arguments->fault;
  if (fault.launch >= 0 && fault.place <= place) return;
  fault = {arguments->launch, site, place, value};
}
