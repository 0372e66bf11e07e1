// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/library_attention.h"

#include <algorithm>

namespace einc {
namespace {

NodeId node(const KernelList& list, uint32_t kernel, const AttentionPlace& place) { return list.kernels[kernel].buffers[place.buffer]; }

// Of the forward whose log_sum the backward reads: o lies as that says.
bool is_of(LibraryAttention::Backward& backward, const LibraryAttention::Forward& forward, const KernelList& list) {
  const AttentionForward& f = forward.match;
  AttentionBackward& b = backward.match;
  if (!f.log_sum || node(list, forward.kernel, *f.log_sum) != node(list, backward.keys, b.log_sum)) return false;
  einc_attention_problem &p = b.problem, known = f.problem;
  if (!same(p.q, known.q) || !same(p.k, known.k) || !same(p.v, known.v) || p.dtype != known.dtype || p.mask != known.mask) return false;
  if (p.batch != known.batch || p.query_heads != known.query_heads || p.key_heads != known.key_heads || p.scale != known.scale)
    return false;
  p.o = known.o;
  return true;
}

class AttentionFinder {
 public:
  AttentionFinder(const KernelList& list, const AskLibrary& ask) : list_(list), ask_(ask) {}

  LibraryAttention run() {
    const auto count = static_cast<uint32_t>(list_.kernels.size());
    for (uint32_t k = 0; k < count; ++k)
      if (auto match = match_attention_forward(*list_.kernels[k].kernel)) found_.forwards.push_back({k, std::move(*match), {}});
    for (uint32_t k = 1; k + 1 < count; ++k) {
      auto match = match_attention_backward(*list_.kernels[k].kernel, *list_.kernels[k + 1].kernel);
      if (match && makes_delta(list_.kernels[k - 1], k, *match)) add({k - 1, k, k + 1, 0, std::move(*match), {}});
    }
    for (LibraryAttention::Backward& b : found_.backwards) b.answer = ask_(b.match.problem);
    for (LibraryAttention::Forward& f : found_.forwards) f.answer = ask_(f.match.problem);
    return std::move(found_);
  }

 private:
  void add(LibraryAttention::Backward backward) {
    for (size_t f = 0; f < found_.forwards.size(); ++f) {
      if (!is_of(backward, found_.forwards[f], list_)) continue;
      backward.forward = f;
      found_.backwards.push_back(std::move(backward));
      return;
    }
  }

  // Whether the kernel makes nothing but the number of each row that the next two read and nobody else.
  bool makes_delta(const GraphKernel& kernel, uint32_t rows, const AttentionBackward& match) const {
    const auto offset = [](const GraphKernel& k, uint16_t buffer) {
      const auto part = std::ranges::find_if(k.parts, [&](const Parts& p) { return p.buffer == buffer; });
      return part == k.parts.end() ? std::nullopt : std::optional(part->offset);
    };
    const auto read = offset(list_.kernels[rows], match.rows_delta);
    return !kernel.kernel->attention && kernel.parts.size() == 1 && read == kernel.parts[0].offset &&
           read == offset(list_.kernels[rows + 1], match.delta.buffer);
  }

  const KernelList& list_;
  const AskLibrary& ask_;
  LibraryAttention found_;
};

class Adder {
 public:
  explicit Adder(CudaExecutable& executable) : executable_(executable) {}

  void add(const LibraryAttention::Forward& f) {
    if (!f.answer.refusal.empty()) return refuse(f.kernel, f.answer);
    CudaAttention call;
    call.problem = f.match.problem;
    call.parts = {f.kernel};
    call.q = operand(f.kernel, f.match.q), call.k = operand(f.kernel, f.match.k);
    call.v = operand(f.kernel, f.match.v), call.o = operand(f.kernel, f.match.o);
    std::vector<uint32_t> written{call.o.buffer};
    if (f.match.log_sum) {
      call.log_sum = operand(f.kernel, *f.match.log_sum);
      written.push_back(call.log_sum.buffer);
    }
    take(std::move(call), f.answer, written);
  }

  void add(const LibraryAttention::Backward& b, const LibraryAttention::Forward& f) {
    if (!b.answer.refusal.empty()) return refuse(b.keys, b.answer);
    CudaAttention call;
    const AttentionBackward& m = b.match;
    call.problem = m.problem;
    call.parts = {b.delta, b.rows, b.keys};
    call.q = operand(b.keys, m.q), call.k = operand(b.keys, m.k), call.v = operand(b.keys, m.v);
    call.o = operand(f.kernel, f.match.o), call.d_o = operand(b.keys, m.d_o), call.log_sum = operand(b.keys, m.log_sum);
    call.d_q = operand(b.rows, m.d_q), call.d_k = operand(b.keys, m.d_k), call.d_v = operand(b.keys, m.d_v);
    const std::vector<uint32_t> written{call.d_q.buffer, call.d_k.buffer, call.d_v.buffer};
    take(std::move(call), b.answer, written);
  }

 private:
  CudaAttention::Operand operand(uint32_t launch, const AttentionPlace& place) const {
    return {executable_.program.launches[launch].buffers[place.buffer], place.offset()};
  }

  void refuse(uint32_t launch, const AttentionAnswer& answer) { executable_.attention_refusals.emplace(launch, answer.refusal); }

  // Not into params and states, nor beside launches that others run with.
  void take(CudaAttention call, const AttentionAnswer& answer, const std::vector<uint32_t>& written) {
    for (const uint32_t b : written)
      if (is_source(executable_.program.buffers[b].role)) return;
    for (const uint32_t l : call.parts)
      if (executable_.calls[l].done_before || !executable_.calls[l].together.empty()) return;
    executable_.workspace_bytes = std::max(executable_.workspace_bytes, answer.workspace_bytes);
    executable_.attention.push_back(std::move(call));
  }

  CudaExecutable& executable_;
};

}  // namespace

LibraryAttention find_library_attention(const KernelList& list, const AskLibrary& ask) { return AttentionFinder(list, ask).run(); }

std::vector<HeldValue> held_by(const LibraryAttention& found, const KernelList& list) {
  std::vector<HeldValue> held;
  for (const LibraryAttention::Backward& b : found.backwards) {
    const LibraryAttention::Forward& f = found.forwards[b.forward];
    if (b.answer.refusal.empty()) held.push_back({node(list, f.kernel, f.match.o), b.keys});
  }
  return held;
}

std::vector<TouchedBuffer> touched_by(const LibraryAttention& found, const Executable& program) {
  std::vector<TouchedBuffer> touched;
  for (const LibraryAttention::Backward& b : found.backwards) {
    const LibraryAttention::Forward& f = found.forwards[b.forward];
    if (!b.answer.refusal.empty()) continue;
    touched.push_back({b.keys, program.launches[f.kernel].buffers[f.match.o.buffer]});
    touched.push_back({b.keys, program.launches[b.rows].buffers[b.match.d_q.buffer]});
  }
  return touched;
}

void add_library_attention(const LibraryAttention& found, CudaExecutable& executable) {
  Adder adder(executable);
  for (const LibraryAttention::Forward& f : found.forwards) adder.add(f);
  for (const LibraryAttention::Backward& b : found.backwards) adder.add(b, found.forwards[b.forward]);
}

}  // namespace einc
