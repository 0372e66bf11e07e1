// SPDX-License-Identifier: Apache-2.0
// Rules of ops that compute, and of what devices make together.
#include <algorithm>
#include <array>

#include "compiler/ir/node_rules.h"
#include "compiler/ir/scan_check.h"

namespace einc {

void NodeRules::random() {
  const auto* a = attr<RandomAttr>();
  if (a == nullptr) return;
  const bool fits = a->kind == RandomKind::keep_mask ? out_.dtype == DType::u8
                    : a->kind == RandomKind::bits    ? out_.dtype == DType::i32
                                                     : is_floating(out_.dtype);
  if (!fits) fail("{} numbers of dtype {}", to_string(a->kind), to_string(out_.dtype));
  if (!(a->keep >= 0 && a->keep <= 1)) fail("keep is no probability");
}

void NodeRules::map() {
  const auto* a = attr<MapAttr>();
  if (a == nullptr) return;
  std::vector<bool> covered(static_cast<size_t>(out_.rank()), false);
  for (size_t k = 0; k < node_.operands.size(); ++k) {
    const AxisList& map = a->maps[k];
    if (map.size() != in(k).rank()) return fail("map of operand {} has {} entries for rank {}", k, map.size(), in(k).rank());
    for (int i = 0; i < map.size(); ++i) {
      size_is(map[i], in(k).axis(i).size);
      if (map.find(map[i]) != i) fail("two axes of operand {} meet", k);
      if (map[i] < out_.rank()) covered[static_cast<size_t>(map[i])] = true;
    }
  }
  for (size_t i = 0; i < covered.size(); ++i)
    if (!covered[i]) fail("axis {} is of no operand", i);
  const bool gives_bool = is_comparison(a->fn) || is_logical(a->fn);
  if (gives_bool && out_.dtype != DType::boolean) fail("{} gives bool", to_string(a->fn));
  if (is_logical(a->fn))
    for (size_t k = 0; k < node_.operands.size(); ++k)
      if (in(k).dtype != DType::boolean) fail("operand {} is not bool", k);
  if (divides_integers(a->fn) && is_floating(out_.dtype)) fail("{} gives integers", to_string(a->fn));
  if (a->fn == MapFn::where && in(0).dtype != DType::boolean) fail("the condition is not bool");
  if (is_transcendental(a->fn) && !is_floating(out_.dtype)) fail("{} gives floating numbers", to_string(a->fn));
}

void NodeRules::reduce() {
  const auto* a = attr<ReduceAttr>();
  if (a == nullptr) return;
  if (a->fn == ReduceFn::logsumexp) fail("logsumexp of whole axes is an op of its own");
  int kept = 0;
  for (int i = 0; i < in(0).rank(); ++i)
    if (!a->axes.contains(i)) size_is(kept++, in(0).axis(i).size);
  rank_is(kept);
  for (int i = 0; i < a->axes.size(); ++i)
    if (!has_axis(in(0), a->axes[i]) || a->axes.find(a->axes[i]) != i) fail("no axis {}, or twice", a->axes[i]);
  const bool logical = a->fn == ReduceFn::any || a->fn == ReduceFn::all;
  if (logical && (in(0).dtype != DType::boolean || out_.dtype != DType::boolean)) fail("{} is of bool", to_string(a->fn));
  if (!logical && is_floating(out_.dtype) != is_floating(in(0).dtype)) fail("changes between integers and floating numbers");
}

void NodeRules::softmax() {
  const auto* a = attr<ReduceAttr>();
  if (a == nullptr) return;
  if (a->axes.size() != 1) return fail("one axis is normalised");
  same_axis_kept(a->axes[0]);
  if (!is_floating(out_.dtype)) fail("not of floating numbers");
}

void NodeRules::scan() {
  if (attr<ScanAttr>() == nullptr) return;
  if (const std::string problem = scan_problem(graph_, node_); !problem.empty()) fail("{}", problem);
}

void NodeRules::scan_result() {
  const auto* a = attr<ScanResultAttr>();
  if (a == nullptr) return;
  const Node& scan = graph_[node_.operands[0]];
  const auto* of = std::get_if<ScanAttr>(&scan.attr);
  if (scan.op != Op::scan || of == nullptr || of->body == nullptr) return fail("of no scan");
  if (a->index < 0 || static_cast<size_t>(a->index) >= of->body->updates.size()) return fail("no result {}", a->index);
  const Type& state = of->body->type(of->body->updates[static_cast<size_t>(a->index)].target);
  const int front = a->index >= of->carries ? 1 : 0;
  if (out_.dtype != state.dtype) fail("dtype {} of {}", to_string(out_.dtype), to_string(state.dtype));
  const bool blocks = front == 1 && out_.rank() == state.rank() && out_.rank() > 0 && runs_pieces(*of->body);
  if (!blocks) rank_is(state.rank() + front);
  if (front == 1 && !blocks) size_is(0, of->length);
  for (int i = blocks ? 1 : 0; i < state.rank(); ++i) size_is(i + (blocks ? 0 : front), state.axis(i).size);
}

void NodeRules::shift() {
  const auto* a = attr<ShiftAttr>();
  if (a == nullptr) return;
  if (a->mesh >= 0 && static_cast<size_t>(a->mesh) >= graph_.mesh.axes.size()) return fail("the mesh has no axis {}", a->mesh);
  if (a->mesh < 0 && !has_axis(in(0), a->axis)) return fail("no axis {}", a->axis);
  if (a->by < 0) fail("it goes {} places", a->by);
  same_sizes();
  if (a->mesh < 0 || a->mesh != graph_.mesh.stages.over) same_dtype();  // a gradient comes back for an activation
}

// A device's part of what the devices along a mesh axis make together.
void NodeRules::collective() {
  const auto* a = attr<CollectiveAttr>();
  if (a == nullptr) return;
  if (a->mesh < 0 || static_cast<size_t>(a->mesh) >= graph_.mesh.axes.size()) return fail("the mesh has no axis {}", a->mesh);
  const bool gathers = node_.op == Op::all_gather || node_.op == Op::all_to_all;
  const bool divides = node_.op == Op::reduce_scatter || node_.op == Op::all_to_all;
  if ((gathers && !has_axis(in(0), a->gathered)) || (divides && !has_axis(in(0), a->divided))) return fail("an axis is missing");
  if (gathers && divides && a->gathered == a->divided) fail("axis {} is put together and divided", a->divided);
  if (out_.dtype != in(0).dtype) fail("dtype {} of {}", to_string(out_.dtype), to_string(in(0).dtype));
  rank_is(in(0).rank());
  const Poly& devices = graph_.mesh.axes[static_cast<size_t>(a->mesh)].size;
  for (int i = 0; i < in(0).rank() && i < out_.rank(); ++i) {
    const Poly& size = in(0).axis(i).size;
    size_is(i, gathers && i == a->gathered ? size * devices : divides && i == a->divided ? divide(size, devices) : size);
  }
}

void NodeRules::arg_reduce() {
  const auto* a = attr<ArgReduceAttr>();
  if (a == nullptr) return;
  if (a->fn != ReduceFn::max && a->fn != ReduceFn::min) fail("neither max nor min");
  if (!has_axis(in(0), a->axis)) return fail("no axis {}", a->axis);
  rank_is(in(0).rank() - 1);
  for (int i = 0; i < in(0).rank(); ++i)
    if (i != a->axis) size_is(i < a->axis ? i : i - 1, in(0).axis(i).size);
  index_result();
}

void NodeRules::top_k() {
  const auto* a = attr<TopKAttr>();
  if (a == nullptr) return;
  if (!has_axis(in(0), a->axis)) return fail("no axis {}", a->axis);
  others_kept(a->axis);
  index_result();
  const auto k = out_.rank() == in(0).rank() ? (in(0).axis(a->axis).size - out_.axis(a->axis).size).as_integer() : std::nullopt;
  if (k && *k < 0) fail("k is above the axis' size");
}

void NodeRules::contract() {
  const auto* a = attr<ContractAttr>();
  if (a == nullptr) return;
  if (a->left.size() != in(0).rank() || a->right.size() != in(1).rank()) return fail("label counts differ from ranks");
  std::array<std::array<int, 2>, 256> uses;  // per label: axis in each operand, -1 where it has none
  uses.fill({-1, -1});
  int highest = out_.rank() - 1;
  for (size_t k = 0; k < 2; ++k) {
    const AxisList& labels = k == 0 ? a->left : a->right;
    for (int i = 0; i < labels.size(); ++i) {
      int& use = uses[static_cast<size_t>(labels[i])][k];
      if (use >= 0) fail("label {} is twice in operand {}", labels[i], k);
      use = i;
      highest = std::max(highest, labels[i]);
    }
  }
  for (int label = 0; label <= highest; ++label) {
    const auto [left, right] = uses[static_cast<size_t>(label)];
    if (left >= 0 && right >= 0 && !(in(0).axis(left).size == in(1).axis(right).size)) fail("label {} has two sizes", label);
    if (label >= out_.rank()) {
      if ((left < 0) != (right < 0)) fail("label {} is summed but in one operand only", label);
    } else if (left < 0 && right < 0) {
      fail("label {} is in no operand", label);
    } else {
      size_is(label, left >= 0 ? in(0).axis(left).size : in(1).axis(right).size);
    }
  }
  if (highest < out_.rank()) fail("nothing is summed");
  if (out_.dtype == DType::boolean) fail("of bool");
}

}  // namespace einc
