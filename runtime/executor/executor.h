// SPDX-License-Identifier: Apache-2.0
// A program with its memory and threads, ready to run. Inputs are set, a run computes outputs, the loss, gradients and the
// new values of params and states; everything can be read afterwards.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/host_array.h"
#include "runtime/base/iterations.h"
#include "runtime/cpu/thread_pool.h"
#include "runtime/executor/mapping.h"
#include "runtime/executor/step_guard.h"
#include "runtime/program/executable.h"
#include "runtime/program/kernel_function.h"
#include "runtime/program/launch_span.h"

namespace einc {

// Where inputs, params and states lie: in the executor's memory, or where they are bound to before the first run.
enum class Sources : uint8_t { own, bound };

// Throws FaultyElement: "index out of range: 'ids' at [0, 3] is 99, but axis 'vocab' of 'wte' has size 50 (model.ein:12:8)", or
// "division by zero: 'counts' at [2] is 0 (model.ein:9:3)".
[[noreturn]] void throw_index_fault(const Executable& program, const IndexFault& fault);
// What an executor of so many threads takes; a number that no machine has when the sum does not fit.
int64_t memory_of(const Executable& program, Sources sources, int threads);

class Executor {
 public:
  // `functions`: the addresses of program.functions. The program and its code outlive the session.
  // Throws RuntimeFailure (resource) when the memory is not to be had.
  Executor(const Executable& program, std::vector<KernelFunction*> functions, int threads);
  Executor(const Executable& program, std::vector<KernelFunction*> functions, std::shared_ptr<ThreadPool> pool, Sources sources);
  // In memory that others use too, but not at the same time: what a run leaves there lasts until one of them runs.
  Executor(const Executable& program, std::vector<KernelFunction*> functions, std::shared_ptr<ThreadPool> pool, Sources sources,
           std::shared_ptr<Mapping> memory);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Params and states as their initialisers say.
  void initialize(uint64_t seed);
  // An input, param or state, or a buffer of the arena, lies there from now on; the memory outlives the executor or the next bind.
  void bind(uint32_t buffer, std::byte* memory) { buffers_[buffer] = memory; }
  // A buffer of the arena lies in its own place again.
  void bind_to_own(uint32_t buffer) { buffers_[buffer] = memory_->base() + program_.buffers[buffer].offset; }
  const std::byte* address(uint32_t buffer) const { return buffers_[buffer]; }
  // Row-major elements in the buffer's dtype; the index of an input, param or state is found by name.
  std::span<std::byte> bytes(uint32_t buffer);
  int find(BufferRole role, const std::string& name) const;  // -1: none
  void set(uint32_t buffer, const HostArray& array);         // of the same dtype and shape
  HostArray get(uint32_t buffer) const;

  // One run, whatever is stored. `step` keys the random streams, as does `seed`. Throws RuntimeFailure (data) for an index out of range.
  void run(uint64_t seed, uint64_t step);
  // Launches `first` to `last`, as parts of one run; then what is copied to where it is stored of what they make.
  void run_launches(size_t first, size_t last, uint64_t seed, uint64_t step);
  void store_copies(size_t first, size_t last);
  // What is not finite of the numbers that launches before this one have made for a look.
  NonFinite fault_before(size_t launch) const;
  // As run, but it ends before it stores what is not finite; `guard` is of the same program.
  NonFinite run_while_finite(uint64_t seed, uint64_t step, StepGuard& guard);
  // All launches, as long as `goes_on` says so after one; false when it did not, and values that are stored after the last launch are
  // not.
  bool run_while(uint64_t seed, uint64_t step, const std::function<bool(size_t launch)>& goes_on);
  const Executable& program() const { return program_; }
  // As run; tells when each thread worked on each launch, in the order of launches and threads.
  std::vector<LaunchSpan> run_traced(uint64_t seed, uint64_t step);
  ThreadPool& pool() { return *pool_; }

 private:
  // `wrap(thread, work)` calls work.
  // A program that launches belong to: the executor's, or the body of a scan with where its buffers lie.
  struct Running {
    const Executable& program;
    const std::vector<std::byte*>& buffers;
    Iterations iterations;  // of the scans around
  };
  template <class Wrap>
  void launch(size_t index, uint64_t seed, uint64_t step, Wrap wrap);
  template <class Wrap>
  void launch(const Running& running, size_t index, uint64_t seed, uint64_t step, Wrap wrap);
  template <class Wrap>
  void run_scan(const Running& outside, const Launch& launch, uint64_t seed, uint64_t step, Wrap wrap);
  double number(uint32_t buffer) const;
  void copy_all(const std::vector<BufferCopy>& copies) { copy_all({program_, buffers_, {}}, copies); }
  static void copy_all(const Running& running, const std::vector<BufferCopy>& copies);
  void report_faults(const Running& running);

  const Executable& program_;
  std::vector<KernelFunction*> functions_;
  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<Mapping> memory_;
  std::vector<std::byte*> buffers_;
  int64_t scratch_;                 // where the threads' own memory starts
  std::vector<IndexFault> faults_;  // per thread
};

}  // namespace einc
