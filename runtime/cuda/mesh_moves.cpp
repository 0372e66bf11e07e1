// SPDX-License-Identifier: Apache-2.0
// All addresses are known beforehand, so that a captured graph holds them.
#include "runtime/cuda/mesh_moves.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"

namespace einc {
namespace {

constexpr int64_t kPackedAlignment = 256;
constexpr int64_t kMostBlocks = 1024;  // eight of each multiprocessor of an H100: the rest goes in strides

int64_t packed_room(int64_t bytes) { return (bytes + kPackedAlignment - 1) / kPackedAlignment * kPackedAlignment; }

}  // namespace

cuda::Kernel helper(const CudaExecutable& helpers, const CudaKernels& kernels, const std::string& name) {
  const auto at = std::ranges::find(helpers.program.functions, name);
  EINC_CHECK(at != helpers.program.functions.end(), "a mesh has no function {}", name);
  return kernels.kernel(static_cast<uint32_t>(at - helpers.program.functions.begin()));
}

uint32_t helper_blocks(int64_t count) {
  return static_cast<uint32_t>(std::clamp<int64_t>((count + kHelperThreads - 1) / kHelperThreads, 1, kMostBlocks));
}

int64_t packed_bytes(const MeshPlan& plan, const MeshShape& mesh, int64_t first, int64_t last, int stages) {
  const auto holds = [&](int64_t device) { return device >= first && device < last; };
  int64_t most = 0;
  for (const MeshCollective& c : plan.collectives) {
    if (c.mesh_axis == stages) continue;
    const std::vector<CollectiveSteps> pieces =
        in_pieces(collective_steps(mesh, c, plan.values[c.from], plan.values[c.to], first, last), plan.most_packed);
    int64_t bytes = 0;
    for (const Transfer& t : pieces.front().terms)
      if (holds(t.from) ? t.source.rows > 1 : holds(t.to)) bytes += packed_room(t.source.bytes());
    for (const Transfer& t : pieces.front().moves)
      if (holds(t.from) ? t.source.rows > 1 : holds(t.to) && t.target.rows > 1) bytes += packed_room(t.source.bytes());
    most = std::max(most, bytes);
  }
  return most;
}

MeshMoves::MeshMoves(const MeshPlan& plan, const MeshShape& mesh, const CudaExecutable& helpers, const CudaKernels& kernels, Place place,
                     int stages)
    : helpers_(helpers), kernels_(kernels), place_(std::move(place)) {
  packed_bytes_ = packed_bytes(plan, mesh, place_.first, place_.last, stages);
  std::vector<uint64_t> table;
  for (const MeshCollective& c : plan.collectives) {
    Moves& moves = all_.emplace_back();
    if (c.mesh_axis == stages) continue;
    const DeviceTensor &from = plan.values[c.from], &to = plan.values[c.to];
    moves.sent_bytes = einc::sent_bytes(mesh, c, from, to);
    for (const CollectiveSteps& piece : in_pieces(collective_steps(mesh, c, from, to, place_.first, place_.last), plan.most_packed))
      moves.pieces.push_back(piece_of(plan, c, piece, table));
  }
  for (const DeviceStep& step : plan.steps)
    if (step.act == DeviceAct::start && step.joined) join(step.index);
  if (table.empty()) return;
  const size_t bytes = table.size() * sizeof(uint64_t);
  const cuda::OwnedStream stream = cuda::make_stream();
  terms_ = cuda::allocate(static_cast<int64_t>(bytes), "the terms of a mesh's sums");
  EINC_CUDA(cuMemcpyHtoDAsync_v2, terms_.get(), table.data(), bytes, stream.get());
  EINC_CUDA(cuStreamSynchronize, stream.get());
}

cuda::DevicePointer MeshMoves::at(int64_t device, uint32_t value) const { return place_.at(device - place_.first, value); }

MeshMoves::Piece MeshMoves::piece_of(const MeshPlan& plan, const MeshCollective& c, const CollectiveSteps& steps,
                                     std::vector<uint64_t>& table) {
  const DeviceTensor& to = plan.values[c.to];
  Piece piece;
  int64_t packed = 0;
  const auto room = [&](int64_t bytes) {
    const int64_t at = std::exchange(packed, packed + packed_room(bytes));
    EINC_CHECK(packed <= packed_bytes_, "a mesh's collective packs more than was counted");
    return place_.packed->get() + static_cast<uint64_t>(at);
  };
  const auto without_gaps = [&](const Transfer& t, uint32_t value) {
    const cuda::DevicePointer source = at(t.from, value) + static_cast<uint64_t>(t.source.offset);
    if (t.source.rows == 1) return source;
    piece.packs.push_back({source, room(t.source.bytes()), t.source.width, t.source.rows, t.source.pitch, t.source.width});
    return piece.packs.back().to;
  };
  for (size_t t = 0; t < steps.terms.size(); ++t) {
    const Transfer& term = steps.terms[t];
    const int64_t bytes = term.source.bytes();
    if (bytes == 0 || (!holds(term.from) && !holds(term.to))) continue;
    if (holds(term.to) && (t == 0 || steps.terms[t - 1].to != term.to))
      piece.sums.push_back({helper(helpers_, kernels_, sum_function(c.reduce, to.dtype, static_cast<int64_t>(steps.terms_of_sum))),
                            table.size(), at(term.to, c.to) + static_cast<uint64_t>(term.target.offset), bytes / bytes_of(to.dtype)});
    const cuda::DevicePointer block = holds(term.from) ? without_gaps(term, c.from) : room(bytes);
    if (!holds(term.from)) piece.terms.receives.push_back({block, bytes, process_of(term.from)});
    if (holds(term.to))
      table.push_back(block);
    else
      piece.terms.sends.push_back({block, bytes, process_of(term.to)});
  }
  for (const Transfer& t : steps.moves) {
    const int64_t bytes = t.source.bytes();
    if (bytes == 0 || (!holds(t.from) && !holds(t.to))) continue;
    const auto target = [&] { return at(t.to, c.to) + static_cast<uint64_t>(t.target.offset); };
    const bool arrives_in_place = !holds(t.from) && t.target.rows == 1;
    const cuda::DevicePointer block = holds(t.from)      ? without_gaps(t, steps.moved == MoveFrom::result ? c.to : c.from)
                                      : arrives_in_place ? target()
                                                         : room(bytes);
    if (!holds(t.from)) piece.messages.receives.push_back({block, bytes, process_of(t.from)});
    if (!holds(t.to)) piece.messages.sends.push_back({block, bytes, process_of(t.to)});
    if (holds(t.to) && !arrives_in_place)
      piece.copies.push_back({block, target(), t.target.width, t.target.rows, t.target.width, t.target.pitch});
  }
  return piece;
}

// All is carried out with the first of the move.
void MeshMoves::join(uint32_t number) {
  EINC_CHECK(number > 0, "nothing stands before the first of a mesh's collectives");
  uint32_t first = number - 1;
  while (first > 0 && all_[first].pieces.empty()) --first;
  std::vector<Piece>&into = all_[first].pieces, &from = all_[number].pieces;
  const auto is_plain = [](const std::vector<Piece>& pieces) {
    return pieces.size() == 1 && pieces[0].packs.empty() && pieces[0].terms.receives.empty() && pieces[0].terms.sends.empty() &&
           pieces[0].sums.empty();
  };
  EINC_CHECK(is_plain(into) && is_plain(from), "what goes in one move is packed or summed");
  const auto append = [](auto& to, const auto& more) { to.insert(to.end(), more.begin(), more.end()); };
  append(into[0].messages.sends, from[0].messages.sends), append(into[0].messages.receives, from[0].messages.receives);
  append(into[0].copies, from[0].copies);
  from.clear();
}

void MeshMoves::move(const Messages& messages, cuda::Stream stream) const {
  if (place_.team != nullptr) place_.team->move(messages.sends, messages.receives, stream);
}

void MeshMoves::run(const Copy& copy, cuda::Stream stream) {
  const auto bytes = [](int64_t count) { return static_cast<size_t>(count); };
  if (copy.rows == 1) return void(EINC_CUDA(cuMemcpyDtoDAsync_v2, copy.to, copy.from, bytes(copy.width), stream));
  cuda::Copy2D rows;
  rows.from_kind = rows.to_kind = cuda::kDeviceMemory;
  rows.from = copy.from, rows.from_pitch = bytes(copy.from_pitch);
  rows.to = copy.to, rows.to_pitch = bytes(copy.to_pitch);
  rows.width = bytes(copy.width), rows.rows = bytes(copy.rows);
  EINC_CUDA(cuMemcpy2DAsync_v2, &rows, stream);
}

void MeshMoves::enqueue(uint32_t number, cuda::Stream stream) const {
  for (const Piece& piece : all_[number].pieces) {
    for (const Copy& copy : piece.packs) run(copy, stream);
    move(piece.terms, stream);
    for (const Sum& sum : piece.sums) {
      uint64_t terms = terms_.get() + sum.terms * sizeof(uint64_t), result = sum.result;
      int64_t count = sum.count;
      void* arguments[] = {&terms, &result, &count};
      EINC_CUDA(cuLaunchKernel, sum.kernel, helper_blocks(count), 1, 1, kHelperThreads, 1, 1, 0, stream, arguments, nullptr);
    }
    move(piece.messages, stream);
    for (const Copy& copy : piece.copies) run(copy, stream);
  }
}

}  // namespace einc
