// SPDX-License-Identifier: Apache-2.0
// Runs a program with every buffer in a mapping of its own, against pages that nothing may touch: the sanitizers do not see
// generated code. Only inputs, params and states have contents before the run; all other bytes are 0xFF, a NaN in every format.
#pragma once
#include <map>
#include <stdexcept>

#include "runtime/base/host_array.h"
#include "runtime/base/iterations.h"
#include "runtime/program/executable.h"
#include "runtime/program/kernel_function.h"

namespace einc {

enum class Guard : uint8_t { after, before };  // the last byte lies before such a page, or the first one behind it

// A launch touched memory outside its buffers; says which launch, and where.
struct GuardHit : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One thread, in the way of Executor. Both arguments outlive it.
class GuardedMachine {
 public:
  GuardedMachine(const Executable& program, const std::vector<KernelFunction*>& functions, Guard guard);
  ~GuardedMachine();
  GuardedMachine(const GuardedMachine&) = delete;
  GuardedMachine& operator=(const GuardedMachine&) = delete;

  int find(BufferRole role, const std::string& name) const;  // -1: none
  void set(uint32_t buffer, const HostArray& array);
  HostArray get(uint32_t buffer) const;
  // All launches, but those that only updates without a bound need where they have no function. Throws GuardHit; RuntimeFailure (data) for
  // an index out of range.
  void run(uint64_t seed, uint64_t step);

 private:
  struct Place {
    std::byte* base = nullptr;
    int64_t bytes = 0;
  };
  // A program, or the body of a scan in one of its iterations.
  struct Running {
    const Executable& program;
    std::vector<std::byte*> buffers;
    Iterations iterations;
  };
  void reserve(const Executable& program);
  void place_bodies(const Executable& program);
  std::byte* place(int64_t bytes);
  void run(const Running& running, uint64_t seed, uint64_t step);
  void copy_all(const Running& running, const std::vector<BufferCopy>& copies);
  void launch(const Running& running, size_t index, uint64_t seed, uint64_t step);
  void run_scan(const Running& outside, const Launch& launch, uint64_t seed, uint64_t step);
  std::string whereabouts(const std::byte* address) const;

  const Executable& program_;
  const std::vector<KernelFunction*>& functions_;
  Guard guard_;
  std::byte* reservation_ = nullptr;
  size_t reserved_ = 0, used_ = 0;
  std::vector<Place> places_;  // of buffers, then the scratch memory, then what bodies of scans keep for themselves
  std::map<const Executable*, std::vector<std::byte*>> bodies_;  // null: an input or a state, elsewhere in each iteration
};

}  // namespace einc
