// SPDX-License-Identifier: Apache-2.0
// Transfers between devices of one process are read where they lie, the rest is one exchange. Terms of a sum are added by one device, in
// an order that no engine decides.
#include "runtime/mesh/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/failure.h"
#include "runtime/mesh/processes.h"

namespace einc {
namespace {

constexpr int64_t kSummedAtOnce = int64_t{1} << 18;  // elements: one thread sums eight terms of them up in about a millisecond

}  // namespace

MeshEngine::MeshEngine(MeshShape mesh, LentPool& pool, const EincTransport* transport)
    : mesh_(std::move(mesh)), pool_(pool), transport_(transport), of_process_(mesh_.devices()), last_(of_process_) {
  if (transport_ == nullptr) return;
  if (mesh_.devices() % transport_->size != 0)
    throw RuntimeFailure(FailureKind::data,
                         fmt::format("{} processes do not divide the {} devices of the mesh", transport_->size, mesh_.devices()));
  of_process_ = mesh_.devices() / transport_->size;
  first_ = of_process_ * transport_->rank;
  last_ = first_ + of_process_;
}

MeshEngine::MeshEngine(const MeshEngine& all, MeshShape mesh, int64_t begin)
    : mesh_(std::move(mesh)),
      pool_(all.pool_),
      transport_(all.transport_),
      begin_(begin),
      of_process_(all.of_process_),
      first_(std::clamp<int64_t>(all.first_ - begin, 0, mesh_.devices())),
      last_(std::clamp<int64_t>(all.last_ - begin, 0, mesh_.devices())),
      room_(all.room_) {}

// All processes that have a part in them list the same messages in the same order, so that each knows what comes from whom.
void MeshEngine::move(std::vector<Message>& messages) {
  if (transport_ == nullptr || transport_->size == 1) return;
  const auto processes = static_cast<size_t>(transport_->size);
  std::vector<int64_t> out(processes, 0), in(processes, 0), at(processes, 0);
  for (const Message& t : messages) {
    if (holds(t.from) == holds(t.to)) continue;
    if (holds(t.from)) out[static_cast<size_t>(process_of(t.to))] += t.bytes;
    if (holds(t.to)) in[static_cast<size_t>(process_of(t.from))] += t.bytes;
  }
  const auto offsets = [&](const std::vector<int64_t>& sizes, std::vector<std::byte>& memory) {
    int64_t total = 0;
    for (size_t p = 0; p < processes; ++p) at[p] = total, total += sizes[p];
    memory.resize(static_cast<size_t>(total));
  };
  offsets(out, room_->sent);
  for (const Message& t : messages)
    if (holds(t.from) && !holds(t.to) && t.bytes > 0) {  // nothing has no place to be copied to
      int64_t& to = at[static_cast<size_t>(process_of(t.to))];
      std::memcpy(room_->sent.data() + to, t.data, static_cast<size_t>(t.bytes));
      to += t.bytes;
    }
  offsets(in, room_->received);
  exchange(*transport_, room_->sent.data(), out, room_->received.data(), in);
  for (Message& t : messages)
    if (holds(t.to) && !holds(t.from)) {
      int64_t& from = at[static_cast<size_t>(process_of(t.from))];
      t.data = room_->received.data() + from;
      from += t.bytes;
    }
}

const std::byte* MeshEngine::packed(const Strip& strip, const std::byte* value) {
  if (strip.rows == 1) return value + strip.offset;
  room_->packed.emplace_back(static_cast<size_t>(strip.bytes()));
  copy_strip(strip, value, room_->packed.back().data());
  return room_->packed.back().data();
}

std::vector<MeshEngine::Message> MeshEngine::moved(const std::vector<Transfer>& transfers, const Memory& memory) {
  std::vector<Message> messages;
  for (const Transfer& t : transfers)
    messages.push_back({t.from, t.to, holds(t.from) ? packed(t.source, memory(t.from)) : nullptr, t.source.bytes()});
  move(messages);
  return messages;
}

int64_t MeshEngine::carry_out(const MeshCollective& c, const DeviceTensor& from, const DeviceTensor& to, const Memory& source,
                              const Memory& target) {
  room_->packed.clear();
  const CollectiveSteps steps = collective_steps(mesh_, c, from, to, first_, last());
  const std::vector<Message> terms = moved(steps.terms, source);
  for (size_t t = 0; t < terms.size(); t += holds(terms[t].to) ? steps.terms_of_sum : 1) {
    if (!holds(terms[t].to)) continue;
    std::vector<const std::byte*> each;
    for (size_t i = 0; i < steps.terms_of_sum; ++i) each.push_back(terms[t + i].data);
    sum(c.reduce, to.dtype, std::move(each), terms[t].bytes / bytes_of(to.dtype), target(terms[t].to) + steps.terms[t].target.offset);
  }
  const std::vector<Message> moves = moved(steps.moves, steps.moved == MoveFrom::result ? target : source);
  for (size_t m = 0; m < moves.size(); ++m)
    if (holds(moves[m].to)) copy_strip(moves[m].data, steps.moves[m].target, target(moves[m].to));
  return sent_bytes(mesh_, c, from, to);
}

// Piece by piece, each on as many threads as are to be had when it begins.
void MeshEngine::sum(ReduceKind reduce, DType dtype, std::vector<const std::byte*> terms, int64_t count, std::byte* result) {
  const int64_t element = bytes_of(dtype);
  for (int64_t at = 0; at < count; at += kSummedAtOnce) {
    const int64_t piece = std::min(kSummedAtOnce, count - at);
    pool_.run([&](ThreadPool& pool) { tree_reduce(pool, reduce, dtype, terms, piece, result + at * element); });
    for (const std::byte*& term : terms) term += piece * element;
  }
}

void MeshEngine::gather(const PartLayout& layout, std::span<const int64_t> shape, int64_t element, const Held& part, std::byte* whole) {
  std::vector<Message> messages;
  for (int64_t device = 0; device < mesh_.devices(); ++device) {
    if (!is_first_holder(mesh_, layout, device)) continue;
    int64_t bytes = element;
    for (const int64_t size : part_of(mesh_, layout, shape, device).size) bytes *= size;
    for (int64_t receiver = 0; receiver < mesh_.devices(); receiver += of_process_)
      messages.push_back({device, receiver, holds(device) ? part(device) : nullptr, bytes});
  }
  move(messages);
  for (const Message& t : messages)
    if (holds(t.to)) copy_box(BoxCopy::in, shape, part_of(mesh_, layout, shape, t.from), element, whole, const_cast<std::byte*>(t.data));
}

void MeshEngine::give_up() {
  if (transport_ != nullptr) transport_->stop(transport_->context);
}

NonFinite MeshEngine::agree(NonFinite fault) const {
  if (transport_ == nullptr) return fault;
  for (const uint8_t other : numbers_of_all(*transport_, static_cast<uint8_t>(fault)))
    fault = earlier(fault, static_cast<NonFinite>(other));
  return fault;
}

}  // namespace einc
