// SPDX-License-Identifier: Apache-2.0
// The devices of this process as a part of a program sees them: what each holds of a value, and how all take the plan's steps. `d` counts
// the devices of this process. Calls come from one thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/mesh/mesh_program.h"

namespace einc {

class PartDevices {
 public:
  virtual ~PartDevices() = default;
  // Memory of the host for what a device is to hold of a value; it does once `written` is called.
  virtual std::byte* place(int64_t d, uint32_t value) = 0;
  virtual void written(int64_t, uint32_t) {}
  // A whole input, for devices that cut their parts out themselves, when they run: true.
  virtual bool lend(uint32_t, const std::byte*) { return false; }
  // What a device holds, in the host's memory: in `room`, or where it lies until the next run.
  virtual const std::byte* read(int64_t d, uint32_t value, std::vector<std::byte>& room) const = 0;
  // The target takes the value, of the same bytes, on all devices.
  virtual void copy(uint32_t value, uint32_t target) = 0;
  // All steps. Of a plan in place: up to where all processes agree that something is not finite, which is told; nothing is stored then.
  // Else nothing is stored. Throws RuntimeFailure: `failing_device` has a faulty element.
  virtual NonFinite run(uint64_t seed, uint64_t step) = 0;
  virtual int64_t failing_device() const = 0;
  // Of the loss, a gradient or an update that is not in place, as the last run made it: whether all its elements are numbers; whether it
  // may be stored in the place of `old`: no NaN, and no infinity where the old element is finite.
  virtual bool holds_numbers(uint32_t value) const = 0;
  virtual bool may_store(uint32_t value, uint32_t old) const = 0;
  // What bits depend on besides the program and the processor's kind.
  virtual std::string numerics() { return ""; }

  const std::vector<SentBytes>& sent() const { return sent_; }  // of the last run, by collective
  const MeshTimes& times() const { return times_; }

 protected:
  std::vector<SentBytes> sent_;
  MeshTimes times_;
};

}  // namespace einc
