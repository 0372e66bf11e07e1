// SPDX-License-Identifier: Apache-2.0
// Found before buffers are planned: what a product reads or writes at another kernel's place becomes a HeldValue, which the plan keeps, and
// only an order of kernels that no plan could mend (somebody reads what is not made yet, or a param has its new value) is a refusal.
#include "compiler/library/epilogues.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/library/match_epilogue.h"
#include "compiler/lower/library_products.h"

namespace einc {
namespace {

// Launches behind an operand's last reader in which the fused product may still run. One more launch than follows at once: in a backward
// the weight's gradient stands between the product that gives an operand's gradient and what is made of that.
constexpr uint32_t kHeldLonger = 2;
constexpr int64_t kGeluStep = 8;  // columns that cuBLASLt keeps GELU's input in multiples of

class ProductFinder {
 public:
  ProductFinder(const BoundGraph& graph, const std::vector<NodeId>& roots, KernelList& list)
      : graph_(graph), list_(list), taken_(list.kernels.size(), false) {
    for (const NodeId id : roots) results_.insert(id.index);
    for (const Update& update : graph.graph.updates)
      if (update.value != update.target && graph.live[update.value.index]) replaces_[update.value.index] = update.target.index;
    for (const Continued& c : list.continued) replaces_[c.whole.index] = c.base.index, bases_.insert(c.base.index);
    for (uint32_t k = 0; k < list.kernels.size(); ++k) {
      for (const NodeId id : list.kernels[k].buffers)
        if (id.valid() && (users_[id.index].empty() || users_[id.index].back() != k)) users_[id.index].push_back(k);
      for (const NodeId id : list.kernels[k].group.members)
        if (graph[id].op == Op::reduce) reducers_[id.index].push_back(k);
    }
  }

  void run() {
    const auto count = static_cast<uint32_t>(list_.kernels.size());
    for (uint32_t k = 0; k < count; ++k)
      if (suits(k)) add_elementwise(k);
    for (uint32_t k = 0; k < count; ++k)
      if (suits(k)) add_sums(k);
  }

 private:
  const std::vector<NodeId>& buffers(uint32_t kernel) const { return list_.kernels[kernel].buffers; }
  DType dtype(uint32_t value) const {
    const DType stored = graph_.graph.nodes[value].type.dtype;
    return stored == DType::real ? DType::f32 : stored;
  }
  int64_t bytes(uint32_t value) const { return graph_.count_in_memory(NodeId{value}) * bytes_of(dtype(value)); }
  // Written where something else lay, or the other way round.
  bool shares_place(uint32_t value) const {
    return is_source(graph_.graph.nodes[value].op) || replaces_.contains(value) || bases_.contains(value);
  }

  // A product whose result fills its buffer, row by row.
  bool suits(uint32_t kernel) const {
    const LibraryProduct* g = list_.library.product(kernel);
    return g && !taken_[kernel] && !makes_twice(kernel) && g->batch == 1 && g->sums != ProductSums::f64 && !g->result.transposed &&
           is_whole(g->result, g->rows, g->columns) && !shares_place(g->result.buffer);
  }
  bool is_whole(const LibraryMatrix& m, int64_t rows, int64_t columns) const {
    return m.offset == 0 && m.leading == columns && bytes(m.buffer) == rows * columns * bytes_of(m.dtype);
  }

  bool is_kernel(uint32_t kernel) const {
    return !taken_[kernel] && !makes_twice(kernel) && !list_.library.product(kernel) && !list_.kernels[kernel].kernel->scan &&
           !list_.kernels[kernel].kernel->collective;
  }

  // What is made again must be made in the same way, which is not for a measurement to decide: an epilogue rounds once where kernels round
  // twice.
  bool makes_twice(uint32_t kernel) const {
    return std::ranges::any_of(list_.kernels[kernel].group.members, [&](NodeId id) { return graph_.is_made_twice(id); });
  }

  // --- what is made of a product element by element ---

  void add_elementwise(uint32_t p) {
    LibraryProduct fused = *list_.library.product(p);
    const uint32_t product = fused.result.buffer;
    const std::vector<uint32_t>& users = users_[product];
    if (users.size() < 2 || users[0] != p || !is_kernel(users[1])) return;
    const uint32_t e = users[1];
    if (list_.kernels[p].when != list_.kernels[e].when) return;
    const std::vector<NodeId>& values = buffers(e);
    const auto slot = std::ranges::find(values, NodeId{product}) - values.begin();
    const auto match = match_epilogue(*list_.kernels[e].kernel, static_cast<uint32_t>(slot), fused.columns);
    if (!match) return;
    const bool kept = users.size() > 2 || results_.contains(product);
    if (kept && !match->reads_product) return;
    fused.epilogue = match->epilogue;
    if (fused.epilogue.bias) fused.epilogue.bias->buffer = values[fused.epilogue.bias->buffer].index;
    if (fused.epilogue.addend) fused.epilogue.addend = values[*fused.epilogue.addend].index;
    if (fused.epilogue.input) fused.epilogue.input = values[*fused.epilogue.input].index;
    if (kept && fused.epilogue.input) return;
    if (kept) fused.epilogue.input = product;
    fused.result.buffer = values[match->result].index;
    fused.result.dtype = dtype(fused.result.buffer);
    if (kept && fused.result.dtype != dtype(product)) return;
    if ((shares_place(fused.result.buffer) && !lies_over_addend(fused)) || !has_library(fused)) return;
    if (keeps_input(fused) && shares_place(*fused.epilogue.input)) return;
    if (auto held = held_until(p, e, fused)) take({fused, {p, e}, p, e}, *held);
  }

  // As a sum lies over what it was before: each element is read before it is written.
  bool lies_over_addend(const LibraryProduct& g) const {
    const auto replaced = replaces_.find(g.result.buffer);
    return g.epilogue.addend && replaced != replaces_.end() && replaced->second == *g.epilogue.addend && !bases_.contains(g.result.buffer);
  }

  static bool keeps_input(const LibraryProduct& g) { return g.epilogue.input && g.epilogue.activation == LibraryActivation::gelu; }

  // As far as it is written; whether there is one for these matrices is asked when the GPU is there.
  static bool has_library(const LibraryProduct& g) {
    const LibraryEpilogue& e = g.epilogue;
    const bool short_result = bytes_of(g.result.dtype) == 2 && (is_fp8(g.left.dtype) || g.left.dtype == g.result.dtype);
    if (!short_result && g.result.dtype != DType::f32) return false;
    if (e.input && g.columns % kGeluStep != 0) return false;
    if (is_fp8(g.left.dtype) && (e.input || (e.bias && g.result.dtype == DType::f32))) return false;
    return !e.bias || e.bias->dtype == g.result.dtype || (e.bias->dtype == DType::f32 && bytes_of(g.result.dtype) == 2);
  }

  // What has to stay for product p in the place of kernel e, whose results take no place of what the product still reads: an added matrix
  // may become the result, element by element, but not an input that is kept. Nothing: it cannot run there.
  std::optional<std::vector<HeldValue>> held_until(uint32_t p, uint32_t e, const LibraryProduct& g) const {
    std::vector<HeldValue> held;
    std::vector<uint32_t> reads{g.left.buffer, g.right.buffer};
    if (g.scale) reads.push_back(*g.scale);
    for (const uint32_t value : reads)
      if (is_replaced(value, p, e) || !lasts(value, e)) return std::nullopt;
    if (g.epilogue.bias) reads.push_back(g.epilogue.bias->buffer);
    if (g.epilogue.input && !keeps_input(g)) reads.push_back(*g.epilogue.input);
    if (g.epilogue.addend && keeps_input(g)) reads.push_back(*g.epilogue.addend);
    for (const uint32_t value : reads)
      if (!is_source(graph_.graph.nodes[value].op)) held.push_back({NodeId{value}, e});
    return held;
  }

  // Whether a kernel between them writes another value in this one's place.
  bool is_replaced(uint32_t value, uint32_t p, uint32_t e) const {
    for (uint32_t k = p + 1; k < e; ++k)
      for (const NodeId id : buffers(k))
        for (auto other = id.valid() ? replaces_.find(id.index) : replaces_.end(); other != replaces_.end();
             other = replaces_.find(other->second))
          if (other->second == value) return true;
    return false;
  }

  // Whether a value is there until e anyway, or nearly so: held for long it would take memory from all kernels in between.
  bool lasts(uint32_t value, uint32_t e) const {
    return is_source(graph_.graph.nodes[value].op) || results_.contains(value) || users_.at(value).back() + kHeldLonger >= e;
  }

  // --- sums of an operand ---

  void add_sums(uint32_t g) {
    for (const bool of_right : {true, false}) {
      LibraryProduct fused = *list_.library.product(g);
      const LibraryMatrix& operand = of_right ? fused.right : fused.left;
      const int64_t count = of_right ? fused.columns : fused.rows;
      // As rows of one number for each sum: of the left operand that is its transpose.
      if (operand.transposed == of_right || !is_whole(operand, fused.depth, count) || is_fp8(operand.dtype)) continue;
      for (const uint32_t first : users_[operand.buffer]) {
        std::vector<uint32_t> parts = kernels_of_sum(first, NodeId{operand.buffer});
        if (parts.empty()) continue;
        const uint32_t sums = list_.kernels[first].group.members[0].index;
        if (dtype(sums) != fused.result.dtype || bytes(sums) != count * bytes_of(fused.result.dtype)) continue;
        if (shares_place(sums) || is_read_before(g, parts, sums)) continue;
        (of_right ? fused.epilogue.right_sums : fused.epilogue.left_sums) = LibraryVector{sums, fused.result.dtype};
        // Written with the product, before or after the kernels would.
        const HeldValue held{NodeId{sums}, std::max(g, parts.back()), g};
        parts.push_back(g);
        std::ranges::sort(parts);
        take({fused, parts, g, g}, {held});
        return;
      }
    }
  }

  // The kernels, `first` and those that add up its parts, that sum a value's rows and do nothing else; none when they do not.
  std::vector<uint32_t> kernels_of_sum(uint32_t first, NodeId value) const {
    const std::vector<NodeId>& members = list_.kernels[first].group.members;
    if (!is_kernel(first) || members.size() != 1 || graph_[members[0]].op != Op::reduce) return {};
    const NodeId sum = members[0];
    if (graph_[sum].operands[0] != value || std::ranges::find(buffers(first), value) == buffers(first).end()) return {};
    if (graph_[sum].as<ReduceAttr>().fn != ReduceFn::sum || graph_.padding_of(value) != 0 || !sums_rows(sum, value)) return {};
    std::vector<uint32_t> kernels;
    for (const uint32_t k : reducers_.at(sum.index)) {
      if (k < first) continue;
      const GraphKernel& other = list_.kernels[k];
      const auto writes = std::ranges::count_if(other.kernel->buffers, [](const BufferUse& b) { return b.access != BufferAccess::read; });
      if (other.group.members.size() != 1 || !is_kernel(k) || writes != 1 || other.when != LaunchWhen::always) return {};
      kernels.push_back(k);
    }
    return kernels;
  }

  // Whether the summed axes lie outside of all others in memory, and those in the order of the result.
  bool sums_rows(NodeId sum, NodeId x) const {
    const AxisList& axes = graph_[sum].as<ReduceAttr>().axes;
    const auto rank = graph_.shape(x).size();
    const auto axis = [&](size_t i) {
      return graph_.order.empty() || graph_.order[x.index].empty() ? static_cast<int>(i) : graph_.order[x.index][i];
    };
    if (!graph_.order.empty() && !graph_.order[sum.index].empty()) return false;
    int last = -1;
    for (size_t i = 0; i < rank; ++i) {
      if (graph_.shape(x)[static_cast<size_t>(axis(i))] == 1) continue;
      if (axes.contains(axis(i))) {
        if (last >= 0) return false;
      } else if (axis(i) < last) {
        return false;
      } else {
        last = axis(i);
      }
    }
    return true;
  }

  // Whether somebody reads the sums when their kernels have made them, but the product would not have.
  bool is_read_before(uint32_t g, const std::vector<uint32_t>& parts, uint32_t sums) const {
    return std::ranges::any_of(users_.at(sums), [&](uint32_t k) { return k < g && std::ranges::find(parts, k) == parts.end(); });
  }

  void take(FusedProduct fused, const std::vector<HeldValue>& held) {
    for (const uint32_t k : fused.parts) taken_[k] = true;
    list_.library.fused.push_back(std::move(fused));
    list_.library.held.insert(list_.library.held.end(), held.begin(), held.end());
  }

  const BoundGraph& graph_;
  KernelList& list_;
  std::vector<bool> taken_;                             // kernels that are part of one
  std::set<uint32_t> results_;                          // values that are read after the last kernel
  std::map<uint32_t, uint32_t> replaces_;               // values that may be written in the place of another
  std::set<uint32_t> bases_;                            // which values go on in
  std::map<uint32_t, std::vector<uint32_t>> users_;     // kernels that have a value, in order
  std::map<uint32_t, std::vector<uint32_t>> reducers_;  // kernels that a reduction is a member of, in order
};

}  // namespace

void find_epilogues(const BoundGraph& graph, const std::vector<NodeId>& roots, KernelList& list) {
  ProductFinder(graph, roots, list).run();
}

}  // namespace einc
