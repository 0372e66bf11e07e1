// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/join_rules.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "compiler/fuse/library_layouts.h"
#include "compiler/fuse/ordered_kernels.h"
#include "runtime/base/dtype.h"

namespace einc {
namespace {

constexpr size_t kLargestGroup = 64;

bool reduces(Op op) { return op == Op::reduce || op == Op::arg_reduce || op == Op::fold; }

}  // namespace

void GroupWork::take(const GroupWork& other) {
  checked |= other.checked;
  guarded |= other.guarded;
  dry = std::max(dry, other.dry);
  for_library |= other.for_library;
  transposes |= other.transposes;
  reduces_rows |= other.reduces_rows;
  tables |= other.tables;
  late |= other.late;
  pulled |= other.pulled;
  reduces_whole |= other.reduces_whole;
  given_numbers &= other.given_numbers;
  gathers |= other.gathers;
  if (reductions == 0) reduced = other.reduced;
  contractions += other.contractions;
  reductions += other.reductions;
  contracted += other.contracted;
  largest = std::max(largest, other.largest);
}

JoinRules::JoinRules(const BoundGraph& graph, const ValuePlaces& values, const KernelTarget& target)
    : graph_(graph), values_(values), target_(target) {
  find_transposes();
  find_gathering();
  find_given_numbers();
}

void JoinRules::find_transposes() {
  transposes_.assign(graph_.graph.size(), false);
  for (uint32_t i = graph_.graph.size(); i-- > 0;) {
    const Node& node = graph_.graph.nodes[i];
    if (!values_.is_in_memory(NodeId{i}) || (node.op != Op::map && node.op != Op::cast)) continue;
    const std::span<const NodeId> readers = values_.readers(NodeId{i});
    const auto alike = [&](NodeId r) { return transposes_[r.index] && graph_.shape(r) == graph_.shape(NodeId{i}); };
    const auto for_tiles = [&](NodeId r) { return alike(r) || bytes_of(graph_[r].type.dtype) == 1; };
    const bool other = !graph_.order.empty() && !graph_.order[i].empty() && graph_.order[i].back() + 1 != node.type.rank();
    transposes_[i] =
        other || (!values_.is_root(NodeId{i}) && std::ranges::any_of(readers, alike) && std::ranges::all_of(readers, for_tiles));
  }
}

void JoinRules::find_given_numbers() {
  given_numbers_.assign(graph_.graph.size(), false);
  if (!graph_.graph.mesh.of_device) return;
  for (uint32_t i = 0; i < graph_.graph.size(); ++i) {
    const Node& node = graph_.graph.nodes[i];
    const auto is_given = [&](NodeId x) { return is_source(graph_[x].op) || graph_[x].op == Op::constant || given_numbers_[x.index]; };
    given_numbers_[i] = node.op == Op::map && graph_.live[i] && graph_.count(NodeId{i}) == 1 && node.origin.phase == Phase::forward &&
                        std::ranges::all_of(node.operands, is_given);
  }
}

void JoinRules::find_gathering() {
  whole_.assign(graph_.graph.size(), {});
  gathers_.assign(graph_.graph.size(), false);
  if (target_.whole_reductions != WholeReductions::joined) return;
  for (uint32_t i = 0; i < graph_.graph.size(); ++i) {
    const Node& node = graph_.graph.nodes[i];
    if (!graph_.live[i] || graph_.guard.is_dry(NodeId{i}) || graph_.count(NodeId{i}) != 1) continue;
    if (node.op == Op::reduce && graph_.count(node.operands[0]) > target_.divide_rows.elements) whole_[i] = NodeId{i};
    for (const NodeId x : node.operands) {
      gathers_[i] = gathers_[i] || gathers_[x.index] || (whole_[i].valid() && whole_[x.index].valid() && whole_[i] != whole_[x.index]);
      if (whole_[x.index].valid()) whole_[i] = whole_[x.index];
    }
  }
}

GroupWork JoinRules::work_of(NodeId id) const {
  GroupWork work{{{id}, {}}};
  const Op op = graph_[id].op;
  work.simple = op == Op::map || op == Op::cast;
  work.ordered = is_ordered(graph_, id) || op == Op::scan || op == Op::scan_result;
  work.collective = is_collective(op);
  work.largest = graph_.count(id);
  work.late = graph_.is_late(id);
  work.pulled = graph_.is_pulled(id);
  if (op == Op::contract) work.contractions = 1, work.contracted = work.largest, work.for_library = suits_library(graph_, id, target_);
  if (reduces(op)) work.reductions = 1, work.reduces_rows = work.largest > 1;
  if (op == Op::reduce) {
    work.reduced = graph_[id].as<ReduceAttr>().axes;
    const std::span<const NodeId> readers = values_.readers(graph_[id].operands[0]);
    work.goes_with_product = std::ranges::any_of(readers, [&](NodeId r) { return sums_operand(graph_, id, r, target_); });
  }
  work.transposes = transposes_[id.index];
  work.tables = values_.is_table(id);
  work.reduces_whole = whole_[id.index] == id;
  work.gathers = gathers_[id.index];
  work.given_numbers = given_numbers_[id.index];
  return work;
}

std::string JoinRules::unsuitable(const GroupWork& a, const GroupWork& b) const {
  if (a.attention || b.attention) return "attention is a kernel of its own";
  if (a.collective || b.collective) return "devices meet there";
  if (a.ordered || b.ordered) return "its loops have an order of their own";
  if (a.goes_with_product || b.goes_with_product) return "a library sums it along with a product";
  if ((a.checked && b.guarded) || (a.guarded && b.checked)) return "a step that would store what is not finite ends between them";
  if (a.late != b.late) return "the backward makes it again, under the memory limit";
  if (a.pulled != b.pulled) return "the gradients of the outputs come later";
  if ((a.dry == 0) != (b.dry == 0)) return "a run may leave one of them out";
  // The layers of a model are alike, and so are the kernels of each gradient's checks, as long as these are not joined to others'.
  if (a.dry != b.dry) return "the updates of each gradient are looked at alone";
  if (a.group.members.size() + b.group.members.size() > kLargestGroup) return "the kernel would hold more than 64 nodes";
  if ((a.transposes && b.reduces_rows) || (a.reduces_rows && b.transposes)) return "what is stored transposed is made in tiles";
  if ((a.reduces_whole && b.gathers) || (a.gathers && b.reduces_whole)) return "numbers of several large values meet once all are there";
  if (a.tables && b.largest > a.largest) return "functions of positions are made once";
  // A weight's scale is read where its parts are narrowed, which are sent a layer ahead, and in the kernel of the activation that it is
  // multiplied with. Made in that kernel it would hold back the parts, and with them the gather.
  if (a.given_numbers && !b.given_numbers) return "what devices meet for waits for nothing but what is given";
  const NodeId first = b.group.members.front();
  const bool in_rows =
      target_.whole_reductions == WholeReductions::joined && a.reduces_rows && b.reductions == 0 && graph_.count(first) == a.largest;
  if (in_rows && is_reduced_otherwise(first, a.reduced)) return "what is only summed is computed where it is summed";
  const int contractions = a.contractions + b.contractions;
  if (contractions > 1) return "each contraction is a kernel of its own";
  if (contractions == 0) return {};
  if (a.for_library || b.for_library) {
    const bool single = a.group.members.size() == 1 && b.group.members.size() == 1;
    return single && scales_product(graph_, first, a.group.members.front()) ? "" : "a library multiplies matrices as they lie in memory";
  }
  if (a.reductions + b.reductions > 0) return "a reduction needs whole rows of the contraction";
  if (std::max(a.largest, b.largest) != a.contracted + b.contracted) return "the contraction's result is read more than once per element";
  // A dry product's readers too: joined, they would store each new value that the looks at its least and most read.
  if (a.dry != 0 || only_reduced(first)) return "what is only summed is computed where it is summed";
  if (graph_[first].op == Op::contract) return "what a contraction reads more than once is stored";
  return {};
}

// Joined to a contraction, which no reduction can follow, such a value would have to be stored.
bool JoinRules::only_reduced(NodeId id) const {
  const std::span<const NodeId> readers = values_.readers(id);
  return !values_.is_root(id) && !readers.empty() && std::ranges::all_of(readers, [&](NodeId r) { return reduces(graph_[r].op); });
}

// Over other axes than these, by all that read it.
bool JoinRules::is_reduced_otherwise(NodeId id, const AxisList& axes) const {
  return only_reduced(id) && std::ranges::all_of(values_.readers(id), [&](NodeId r) {
           return graph_[r].op == Op::reduce && graph_[r].operands[0] == id && graph_[r].as<ReduceAttr>().axes != axes;
         });
}

}  // namespace einc
