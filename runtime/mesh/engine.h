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
#include "runtime/mesh/transfers.h"
#include "runtime/mesh/transport.h"

namespace einc {

class MeshEngine {
 public:
  // `transport`: null for one process. Throws RuntimeFailure (data) when the processes do not divide the devices.
  MeshEngine(MeshShape mesh, LentPool& pool, const EincTransport* transport);
  // Of a part of another engine's devices, `mesh`, which begins with number `begin` of them. It packs where that one does: collectives are
  // carried out one after another.
  MeshEngine(const MeshEngine& all, MeshShape mesh, int64_t begin);

  const MeshShape& mesh() const { return mesh_; }
  // The devices of this process.
  int64_t first() const { return first_; }
  int64_t last() const { return last_; }
  int64_t held() const { return last_ - first_; }
  const EincTransport* transport() const { return transport_; }
  int64_t process_of(int64_t device) const { return (begin_ + device) / of_process_; }
  int64_t of_process() const { return of_process_; }  // devices, of all that there are
  bool holds(int64_t device) const { return device >= first_ && device < last(); }

  using Memory = std::function<std::byte*(int64_t device)>;  // of a value, on a device of this process
  // The bytes that all devices together send.
  int64_t carry_out(const MeshCollective& collective, const DeviceTensor& from, const DeviceTensor& to, const Memory& source,
                    const Memory& target);
  using Held = std::function<const std::byte*(int64_t device)>;
  // Puts parts together in each process.
  void gather(const PartLayout& layout, std::span<const int64_t> shape, int64_t element, const Held& part, std::byte* whole);
  // Of what processes find, what a run looks for first.
  NonFinite agree(NonFinite fault) const;
  // This process fails: none waits for others any more. Of any thread.
  void give_up();

 private:
  // Bytes of a device that another one is sent.
  struct Message {
    int64_t from, to;
    const std::byte* data;  // of a sender here; then where it lies for a receiver here
    int64_t bytes;
  };
  void move(std::vector<Message>& messages);
  std::vector<Message> moved(const std::vector<Transfer>& transfers, const Memory& memory);
  void sum(ReduceKind reduce, DType dtype, std::vector<const std::byte*> terms, int64_t count, std::byte* result);
  // Where a strip lies alone: in the value itself, or packed.
  const std::byte* packed(const Strip& strip, const std::byte* value);

  MeshShape mesh_;
  LentPool& pool_;
  const EincTransport* transport_;
  int64_t begin_ = 0, of_process_, first_ = 0, last_;
  // Of the collective in progress.
  struct Room {
    std::vector<std::vector<std::byte>> packed;
    std::vector<std::byte> sent, received;
  };
  std::shared_ptr<Room> room_ = std::make_shared<Room>();
};

}  // namespace einc
