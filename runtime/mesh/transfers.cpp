// SPDX-License-Identifier: Apache-2.0
// A sum is a reduce-scatter (device k of a group gets block k of all, and adds them up), of an all_reduce with an all-gather behind it: the
// bytes of a ring, but an order of additions that no engine decides.
#include "runtime/mesh/transfers.h"

#include <algorithm>
#include <cstring>

namespace einc {
namespace {

// Elements of a value that device k of n sums up for all: as even as they come.
int64_t share(int64_t count, int64_t k, int64_t n) { return count / n * k + std::min(k, count % n); }

// Block k of n along an axis.
Strip block_of(const DeviceTensor& value, int axis, int64_t k, int64_t n) {
  int64_t rows = 1;
  for (int a = 0; a < axis; ++a) rows *= value.shape[static_cast<size_t>(a)];
  if (value.bytes == 0) return {};
  const int64_t pitch = value.bytes / rows, width = pitch / n;
  return rows == 1 ? Strip{k * width, width, 1, width} : Strip{k * width, width, rows, pitch};
}

Strip share_of(const DeviceTensor& value, int64_t k, int64_t n) {
  const int64_t element = bytes_of(value.dtype), count = value.bytes / element;
  const int64_t begin = share(count, k, n) * element, bytes = share(count, k + 1, n) * element - begin;
  return {begin, bytes, 1, bytes};
}

Strip all_of(const DeviceTensor& value) { return {0, value.bytes, 1, value.bytes}; }

// What pieces of a transfer are multiples of: rows of both strips, of which the shorter ones divide the longer.
int64_t unit_of(const Transfer& t) {
  constexpr int64_t kAligned = 128;  // what a GPU's memory gives at once
  if (t.source.rows == 1 && t.target.rows == 1) return kAligned;
  return std::max(t.source.rows == 1 ? 1 : t.source.width, t.target.rows == 1 ? 1 : t.target.width);
}

int64_t units_of(const Transfer& t) { return (t.source.bytes() + unit_of(t) - 1) / unit_of(t); }

// Bytes of a strip from one on, in the order in which they are packed.
Strip part_of(const Strip& strip, int64_t begin, int64_t bytes) {
  if (strip.rows == 1) return {strip.offset + begin, bytes, 1, bytes};
  return {strip.offset + begin / strip.width * strip.pitch, strip.width, bytes / strip.width, strip.pitch};
}

Transfer piece_of(const Transfer& t, int64_t piece, int64_t pieces) {
  const int64_t unit = unit_of(t), all = t.source.bytes();
  const int64_t begin = std::min(all, share(units_of(t), piece, pieces) * unit);
  const int64_t bytes = std::min(all, share(units_of(t), piece + 1, pieces) * unit) - begin;
  return {t.from, t.to, part_of(t.source, begin, bytes), part_of(t.target, begin, bytes)};
}

}  // namespace

void copy_strip(const Strip& strip, const std::byte* value, std::byte* packed) {
  for (int64_t r = 0; r < strip.rows; ++r)
    std::memcpy(packed + r * strip.width, value + strip.offset + r * strip.pitch, static_cast<size_t>(strip.width));
}

void copy_strip(const std::byte* packed, const Strip& strip, std::byte* value) {
  for (int64_t r = 0; r < strip.rows; ++r)
    std::memcpy(value + strip.offset + r * strip.pitch, packed + r * strip.width, static_cast<size_t>(strip.width));
}

int64_t sent_bytes(const MeshShape& mesh, const MeshCollective& c, const DeviceTensor& from, const DeviceTensor& to) {
  const int64_t n = mesh.sizes[static_cast<size_t>(c.mesh_axis)], groups = mesh.devices() / n;
  switch (c.kind) {
    case CollectiveKind::all_reduce:
      return groups * (n - 1) * (from.bytes + to.bytes);
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return groups * (n - 1) * from.bytes;
    case CollectiveKind::all_gather:
      return groups * n * (n - 1) * from.bytes;
    case CollectiveKind::shift:
      return c.by % n == 0 ? 0 : groups * n * from.bytes;
  }
  return 0;
}

CollectiveSteps collective_steps(const MeshShape& mesh, const MeshCollective& c, const DeviceTensor& from, const DeviceTensor& to,
                                 int64_t first, int64_t last) {
  const int64_t n = mesh.sizes[static_cast<size_t>(c.mesh_axis)];
  const bool sums = c.kind == CollectiveKind::all_reduce, scatters = c.kind == CollectiveKind::reduce_scatter;
  CollectiveSteps steps;
  steps.group = n;
  steps.terms_of_sum = sums || scatters ? static_cast<size_t>(n) : 0;
  steps.moved = sums ? MoveFrom::result : MoveFrom::operand;
  const auto add = [&](const std::vector<int64_t>& group, int64_t sender, int64_t receiver) {
    const int64_t device = group[static_cast<size_t>(sender)], other = group[static_cast<size_t>(receiver)];
    if (sums) {
      steps.terms.push_back({device, other, share_of(from, receiver, n), share_of(to, receiver, n)});
      if (sender != receiver) steps.moves.push_back({other, device, share_of(to, receiver, n), share_of(to, receiver, n)});
    } else if (scatters) {
      steps.terms.push_back({device, other, block_of(from, c.divided, receiver, n), all_of(to)});
    } else if (c.kind == CollectiveKind::shift) {
      if (sender == (receiver + c.by) % n) steps.moves.push_back({device, other, all_of(from), all_of(to)});
    } else {
      const Strip source = c.kind == CollectiveKind::all_to_all ? block_of(from, c.divided, receiver, n) : all_of(from);
      steps.moves.push_back({device, other, source, block_of(to, c.gathered, sender, n)});
    }
  };
  // Sums made here need all terms, what is made elsewhere only what is sent there: a list as long as a group, not as its square.
  for (int64_t begin = 0; begin < mesh.devices(); ++begin) {
    if (mesh.coordinate(begin, c.mesh_axis) != 0) continue;
    const std::vector<int64_t> group = mesh.along(begin, c.mesh_axis);
    std::vector<int64_t> here;  // coordinates
    for (int64_t k = 0; k < n; ++k)
      if (group[static_cast<size_t>(k)] >= first && group[static_cast<size_t>(k)] < last) here.push_back(k);
    if (here.empty()) continue;
    for (int64_t receiver = 0; receiver < n; ++receiver) {
      if (!std::ranges::binary_search(here, receiver)) {
        for (const int64_t sender : here) add(group, sender, receiver);
        continue;
      }
      for (int64_t sender = 0; sender < n; ++sender) add(group, sender, receiver);
    }
  }
  return steps;
}

std::vector<CollectiveSteps> in_pieces(CollectiveSteps steps, int64_t most) {
  int64_t pieces = 1;
  // Transfers of a list are as large, but for an element less in later ones; a device sends one to each and receives one of each. The first
  // of every process' list is as large as that of the others, so that all make as many pieces: their messages meet.
  const auto cut = [&](const std::vector<Transfer>& list, bool receives_apart) {
    if (list.empty()) return;
    const Transfer& t = list.front();
    const int64_t rooms = (t.source.rows > 1 ? 1 : 0) + (receives_apart || t.target.rows > 1 ? 1 : 0);
    const int64_t room = t.source.bytes() * steps.group * rooms;
    pieces = std::max(pieces, std::min((room + most - 1) / most, units_of(t)));
  };
  cut(steps.terms, true);
  cut(steps.moves, false);
  // A sum may lie where its operand does: a piece reads the same bytes of a device's block that it writes, and no others.
  std::vector<CollectiveSteps> all;
  if (pieces == 1) {
    all.push_back(std::move(steps));
    return all;
  }
  for (int64_t p = 0; p < pieces; ++p) {
    CollectiveSteps& piece = all.emplace_back();
    piece.terms_of_sum = steps.terms_of_sum, piece.moved = steps.moved, piece.group = steps.group;
    for (const Transfer& t : steps.terms) piece.terms.push_back(piece_of(t, p, pieces));
    for (const Transfer& t : steps.moves) piece.moves.push_back(piece_of(t, p, pieces));
  }
  return all;
}

}  // namespace einc
