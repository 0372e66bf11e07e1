// SPDX-License-Identifier: Apache-2.0
// A collective is a list of transfers between devices, which all processes make alike; those between devices of one process are read where
// they lie, the rest is one exchange. A sum is a reduce-scatter (device k of a group gets block k of all, and adds them up), of an
// all_reduce with an all-gather behind it: the bytes of a ring, but an order of additions that no engine decides.
#include "runtime/mesh/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/failure.h"
#include "runtime/mesh/processes.h"

namespace einc {
namespace {

// Block k of n along an axis.
PartBox block_box(std::span<const int64_t> shape, int axis, int64_t k, int64_t n) {
  PartBox box{std::vector<int64_t>(shape.size(), 0), {shape.begin(), shape.end()}};
  const auto a = static_cast<size_t>(axis);
  box.size[a] /= n;
  box.begin[a] = k * box.size[a];
  return box;
}

// Elements of a value that device k of n sums up for all: as even as they come.
int64_t share(int64_t count, int64_t k, int64_t n) { return count / n * k + std::min(k, count % n); }

constexpr int64_t kPiece = int64_t{1} << 18;  // elements: one thread sums eight terms of them up in about a millisecond

}  // namespace

MeshEngine::MeshEngine(MeshShape mesh, LentPool& pool, const EincTransport* transport)
    : mesh_(std::move(mesh)), pool_(pool), transport_(transport), held_(mesh_.devices()) {
  if (transport_ == nullptr) return;
  if (mesh_.devices() % transport_->size != 0)
    throw RuntimeFailure(FailureKind::data,
                         fmt::format("{} processes do not divide the {} devices of the mesh", transport_->size, mesh_.devices()));
  held_ = mesh_.devices() / transport_->size;
  first_ = held_ * transport_->rank;
}

template <class Visit>
void MeshEngine::each_group(int axis, Visit visit) const {
  for (int64_t device = 0; device < mesh_.devices(); ++device)
    if (mesh_.coordinate(device, axis) == 0) visit(mesh_.along(device, axis));
}

// All processes list the same transfers in the same order, so that each knows what comes from whom.
int64_t MeshEngine::move(std::vector<Transfer>& transfers) {
  int64_t bytes = 0;
  for (const Transfer& t : transfers)
    if (t.from != t.to) bytes += t.bytes;
  if (transport_ == nullptr || transport_->size == 1) return bytes;
  const auto processes = static_cast<size_t>(transport_->size);
  std::vector<int64_t> out(processes, 0), in(processes, 0), at(processes, 0);
  for (const Transfer& t : transfers) {
    if (holds(t.from) == holds(t.to)) continue;
    if (holds(t.from)) out[static_cast<size_t>(process_of(t.to))] += t.bytes;
    if (holds(t.to)) in[static_cast<size_t>(process_of(t.from))] += t.bytes;
  }
  const auto offsets = [&](const std::vector<int64_t>& sizes, std::vector<std::byte>& memory) {
    int64_t total = 0;
    for (size_t p = 0; p < processes; ++p) at[p] = total, total += sizes[p];
    memory.resize(static_cast<size_t>(total));
  };
  offsets(out, sent_);
  for (const Transfer& t : transfers)
    if (holds(t.from) && !holds(t.to)) {
      int64_t& to = at[static_cast<size_t>(process_of(t.to))];
      std::memcpy(sent_.data() + to, t.data, static_cast<size_t>(t.bytes));
      to += t.bytes;
    }
  offsets(in, received_);
  exchange(*transport_, sent_.data(), out, received_.data(), in);
  for (Transfer& t : transfers)
    if (holds(t.to) && !holds(t.from)) {
      int64_t& from = at[static_cast<size_t>(process_of(t.from))];
      t.data = received_.data() + from;
      from += t.bytes;
    }
  return bytes;
}

const std::byte* MeshEngine::block(const DeviceTensor& value, int axis, int64_t k, int64_t n, const std::byte* memory) {
  const PartBox box = block_box(value.shape, axis, k, n);
  const bool alone = std::all_of(value.shape.begin(), value.shape.begin() + axis, [](int64_t size) { return size == 1; });
  if (alone) return memory + value.bytes / n * k;
  packed_.emplace_back(static_cast<size_t>(value.bytes / n));
  copy_box(BoxCopy::out, value.shape, box, bytes_of(value.dtype), const_cast<std::byte*>(memory), packed_.back().data());
  return packed_.back().data();
}

int64_t MeshEngine::carry_out(const MeshCollective& c, const DeviceTensor& from, const DeviceTensor& to, const Memory& source,
                              const Memory& target) {
  packed_.clear();
  switch (c.kind) {
    case CollectiveKind::all_reduce: {
      const int64_t bytes = reduce(c, from, to, source, target);
      return bytes + spread_blocks(c, to, target);
    }
    case CollectiveKind::reduce_scatter:
      return reduce(c, from, to, source, target);
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return put_together(c, from, to, source, target);
  }
  return 0;
}

// Device k of a group gets block k of all, and combines them: of an all_reduce into its place in the result.
int64_t MeshEngine::reduce(const MeshCollective& c, const DeviceTensor& from, const DeviceTensor& to, const Memory& source,
                           const Memory& target) {
  const int64_t element = bytes_of(from.dtype), count = from.bytes / element, n = mesh_.sizes[static_cast<size_t>(c.mesh_axis)];
  const bool everywhere = c.kind == CollectiveKind::all_reduce;
  const auto begin = [&](int64_t k) { return everywhere ? share(count, k, n) : count / n * k; };
  std::vector<Transfer> transfers;
  each_group(c.mesh_axis, [&](const std::vector<int64_t>& group) {
    for (int64_t k = 0; k < n; ++k)
      for (const int64_t sender : group) {
        const std::byte* data = nullptr;
        if (holds(sender)) data = everywhere ? source(sender) + begin(k) * element : block(from, c.divided, k, n, source(sender));
        transfers.push_back({sender, group[static_cast<size_t>(k)], data, (begin(k + 1) - begin(k)) * element});
      }
  });
  const int64_t bytes = move(transfers);
  for (size_t t = 0; t < transfers.size(); t += static_cast<size_t>(n)) {
    const int64_t device = transfers[t].to, k = mesh_.coordinate(device, c.mesh_axis);
    if (!holds(device)) continue;
    std::vector<const std::byte*> terms;
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) terms.push_back(transfers[t + i].data);
    sum(c.reduce, to.dtype, std::move(terms), transfers[t].bytes / element, target(device) + (everywhere ? begin(k) * element : 0));
  }
  return bytes;
}

// Piece by piece, each on as many threads as are to be had when it begins.
void MeshEngine::sum(ReduceKind reduce, DType dtype, std::vector<const std::byte*> terms, int64_t count, std::byte* result) {
  const int64_t element = bytes_of(dtype);
  for (int64_t at = 0; at < count; at += kPiece) {
    const int64_t piece = std::min(kPiece, count - at);
    pool_.run([&](ThreadPool& pool) { tree_reduce(pool, reduce, dtype, terms, piece, result + at * element); });
    for (const std::byte*& term : terms) term += piece * element;
  }
}

// Block k of the value, which device k of a group has made, goes to the others.
int64_t MeshEngine::spread_blocks(const MeshCollective& c, const DeviceTensor& value, const Memory& target) {
  const int64_t element = bytes_of(value.dtype), count = value.bytes / element, n = mesh_.sizes[static_cast<size_t>(c.mesh_axis)];
  std::vector<Transfer> transfers;
  each_group(c.mesh_axis, [&](const std::vector<int64_t>& group) {
    for (int64_t k = 0; k < n; ++k)
      for (const int64_t receiver : group) {
        const int64_t maker = group[static_cast<size_t>(k)], begin = share(count, k, n) * element;
        if (maker == receiver) continue;
        transfers.push_back({maker, receiver, holds(maker) ? target(maker) + begin : nullptr, share(count, k + 1, n) * element - begin});
      }
  });
  const int64_t bytes = move(transfers);
  for (const Transfer& t : transfers)
    if (holds(t.to))
      std::memcpy(target(t.to) + share(count, mesh_.coordinate(t.from, c.mesh_axis), n) * element, t.data, static_cast<size_t>(t.bytes));
  return bytes;
}

int64_t MeshEngine::put_together(const MeshCollective& c, const DeviceTensor& from, const DeviceTensor& to, const Memory& source,
                                 const Memory& target) {
  const int64_t n = mesh_.sizes[static_cast<size_t>(c.mesh_axis)];
  const bool divides = c.kind == CollectiveKind::all_to_all;
  std::vector<Transfer> transfers;
  each_group(c.mesh_axis, [&](const std::vector<int64_t>& group) {
    for (const int64_t sender : group)
      for (int64_t k = 0; k < n; ++k) {
        const std::byte* data = nullptr;
        if (holds(sender)) data = divides ? block(from, c.divided, k, n, source(sender)) : source(sender);
        transfers.push_back({sender, group[static_cast<size_t>(k)], data, divides ? from.bytes / n : from.bytes});
      }
  });
  const int64_t bytes = move(transfers);
  for (const Transfer& t : transfers)
    if (holds(t.to))
      copy_box(BoxCopy::in, to.shape, block_box(to.shape, c.gathered, mesh_.coordinate(t.from, c.mesh_axis), n), bytes_of(to.dtype),
               target(t.to), const_cast<std::byte*>(t.data));
  return bytes;
}

void MeshEngine::gather(const PartLayout& layout, std::span<const int64_t> shape, int64_t element, const Memory& part, std::byte* whole) {
  std::vector<Transfer> transfers;
  for (int64_t device = 0; device < mesh_.devices(); ++device) {
    if (!is_first_holder(mesh_, layout, device)) continue;
    int64_t bytes = element;
    for (const int64_t size : part_of(mesh_, layout, shape, device).size) bytes *= size;
    for (int64_t receiver = 0; receiver < mesh_.devices(); receiver += held_)
      transfers.push_back({device, receiver, holds(device) ? part(device) : nullptr, bytes});
  }
  move(transfers);
  for (const Transfer& t : transfers)
    if (holds(t.to)) copy_box(BoxCopy::in, shape, part_of(mesh_, layout, shape, t.from), element, whole, const_cast<std::byte*>(t.data));
}

void MeshEngine::give_up() {
  if (transport_ != nullptr) transport_->stop(transport_->context);
}

uint8_t MeshEngine::agree(uint8_t number) { return transport_ == nullptr ? number : std::ranges::max(numbers_of_all(*transport_, number)); }

}  // namespace einc
