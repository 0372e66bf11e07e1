// SPDX-License-Identifier: Apache-2.0
// A backward is the plug-in's where it is that of a forward of the list, whose result it reads, and where what our two kernels subtract in
// each row is made for them alone.
#include "compiler/library/library_attention.h"

#include <algorithm>
#include <set>

#include "compiler/library/attention_problem.h"

namespace einc {
namespace {

class AttentionFinder {
 public:
  AttentionFinder(const BoundGraph& graph, const AskLibrary& ask, KernelList& list) : ask_(ask), list_(list) {
    for (const Update& update : graph.graph.updates) updates_.insert(update.value.index);
  }

  void run() {
    const auto count = static_cast<uint32_t>(list_.kernels.size());
    for (uint32_t k = 0; k < count; ++k)
      if (auto match = attention_forward(*list_.kernels[k].kernel)) forwards_.push_back({k, std::move(*match)});
    for (const Forward& forward : forwards_) add(forward);
    for (uint32_t k = 1; k + 1 < count; ++k) {
      auto match = attention_backward(*list_.kernels[k].kernel, *list_.kernels[k + 1].kernel);
      if (match && makes_delta(list_.kernels[k - 1], k)) add(*match, k);
    }
  }

 private:
  struct Forward {
    uint32_t kernel = 0;
    AttentionForward match;
  };

  AttentionCall::Operand operand(uint32_t kernel, const AttentionPlace& place) const {
    return {list_.kernels[kernel].buffers[place.buffer], place.offset()};
  }

  // Whether the kernel makes nothing but the number of each row that the next two read.
  bool makes_delta(const GraphKernel& kernel, uint32_t rows) const {
    const auto delta = [&](uint32_t k) { return list_.kernels[k].buffers[*list_.kernels[k].kernel->attention->softmax->deltas]; };
    return delta(rows).valid() && delta(rows) == delta(rows + 1) && kernel.group.stored == std::vector{delta(rows)};
  }

  // Of the forward whose log_sum the backward reads.
  bool is_of(const AttentionBackward& backward, uint32_t keys, const Forward& forward) const {
    const AttentionForward& f = forward.match;
    if (!f.log_sum || operand(forward.kernel, *f.log_sum).value != operand(keys, backward.log_sum).value) return false;
    const einc_attention_problem &p = backward.problem, &known = f.problem;
    if (!same(p.q, known.q) || !same(p.k, known.k) || !same(p.v, known.v) || p.dtype != known.dtype || p.mask != known.mask) return false;
    return p.batch == known.batch && p.query_heads == known.query_heads && p.key_heads == known.key_heads && p.scale == known.scale;
  }

  void add(const Forward& f) {
    AttentionCall call;
    call.problem = f.match.problem;
    call.parts = {f.kernel};
    call.q = operand(f.kernel, f.match.q), call.k = operand(f.kernel, f.match.k);
    call.v = operand(f.kernel, f.match.v), call.o = operand(f.kernel, f.match.o);
    if (f.match.log_sum) call.log_sum = operand(f.kernel, *f.match.log_sum);
    take(std::move(call));
  }

  void add(const AttentionBackward& b, uint32_t rows) {
    const uint32_t keys = rows + 1;
    const auto of = std::ranges::find_if(forwards_, [&](const Forward& f) { return is_of(b, keys, f); });
    if (of == forwards_.end()) return;
    AttentionCall call;
    call.problem = b.problem;
    call.problem.o = of->match.problem.o;
    call.parts = {rows - 1, rows, keys};
    call.q = operand(keys, b.q), call.k = operand(keys, b.k), call.v = operand(keys, b.v);
    call.o = operand(of->kernel, of->match.o), call.d_o = operand(keys, b.d_o), call.log_sum = operand(keys, b.log_sum);
    call.d_q = operand(rows, b.d_q), call.d_k = operand(keys, b.d_k), call.d_v = operand(keys, b.d_v);
    const NodeId o = call.o.value;
    if (take(std::move(call))) list_.library.held.push_back({o, keys});
  }

  // Not into params and states.
  bool take(AttentionCall call) {
    const std::vector<AttentionCall::Operand> written =
        call.is_backward() ? std::vector{call.d_q, call.d_k, call.d_v} : std::vector{call.o, call.log_sum};
    for (const AttentionCall::Operand& w : written)
      if (w.value.valid() && updates_.contains(w.value.index)) return false;
    const AttentionAnswer answer = ask_(call.problem);
    if (!answer.refusal.empty()) {
      list_.library.attention_refusals.emplace(call.at(), answer.refusal);
      return false;
    }
    call.workspace_bytes = answer.workspace_bytes;
    list_.library.attention.push_back(std::move(call));
    return true;
  }

  const AskLibrary& ask_;
  KernelList& list_;
  std::set<uint32_t> updates_;  // new values of params and states
  std::vector<Forward> forwards_;
};

}  // namespace

void find_library_attention(const BoundGraph& graph, const AskLibrary& ask, KernelList& list) { AttentionFinder(graph, ask, list).run(); }

}  // namespace einc
