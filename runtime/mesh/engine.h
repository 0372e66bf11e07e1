// SPDX-License-Identifier: Apache-2.0
// Carries out collectives among the devices of a mesh, of which each process holds a block of neighbours (one process: all of them). What
// moves between devices is the same for any number of processes, and so are the bits: each element of a sum is made by one device, from
// the terms of all, in the order of tree_sum.h, and sent to those that need it.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/mesh/collective_queue.h"
#include "runtime/mesh/mesh_plan.h"
#include "runtime/mesh/transport.h"

namespace einc {

class MeshEngine {
 public:
  // `transport`: null for one process. Throws RuntimeFailure (data) when the processes do not divide the devices.
  MeshEngine(MeshShape mesh, LentPool& pool, const EincTransport* transport);

  const MeshShape& mesh() const { return mesh_; }
  // The devices of this process.
  int64_t first() const { return first_; }
  int64_t last() const { return first_ + held_; }
  bool holds(int64_t device) const { return device >= first_ && device < last(); }

  using Memory = std::function<std::byte*(int64_t device)>;  // of a value, on a device of this process
  // The bytes that all devices together send.
  int64_t carry_out(const MeshCollective& collective, const DeviceTensor& from, const DeviceTensor& to, const Memory& source,
                    const Memory& target);
  // Puts parts together in each process.
  void gather(const PartLayout& layout, std::span<const int64_t> shape, int64_t element, const Memory& part, std::byte* whole);
  // The largest of the processes' numbers.
  uint8_t agree(uint8_t number);
  // This process fails: none waits for others any more. Of any thread.
  void give_up();

 private:
  struct Transfer {
    int64_t from, to;
    const std::byte* data;  // of a sender here; then where it lies for a receiver here
    int64_t bytes;
  };
  int64_t process_of(int64_t device) const { return device / held_; }
  int64_t move(std::vector<Transfer>& transfers);
  int64_t reduce(const MeshCollective& c, const DeviceTensor& from, const DeviceTensor& to, const Memory& source, const Memory& target);
  int64_t spread_blocks(const MeshCollective& c, const DeviceTensor& value, const Memory& target);
  void sum(ReduceKind reduce, DType dtype, std::vector<const std::byte*> terms, int64_t count, std::byte* result);
  int64_t put_together(const MeshCollective& c, const DeviceTensor& from, const DeviceTensor& to, const Memory& source,
                       const Memory& target);
  template <class Visit>
  void each_group(int axis, Visit visit) const;
  // Where block k of n along an axis lies alone: in the value itself, or packed.
  const std::byte* block(const DeviceTensor& value, int axis, int64_t k, int64_t n, const std::byte* memory);

  MeshShape mesh_;
  LentPool& pool_;
  const EincTransport* transport_;
  int64_t first_ = 0, held_;
  std::vector<std::vector<std::byte>> packed_;  // of the collective in progress
  std::vector<std::byte> sent_, received_;
};

}  // namespace einc
