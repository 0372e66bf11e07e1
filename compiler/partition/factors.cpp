// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/factors.h"

#include "compiler/partition/layout.h"
#include "compiler/partition/scan_factors.h"

namespace einc {
namespace {

class FactorBuilder {
 public:
  FactorBuilder(const Graph& graph, NodeId id) : graph_(graph), id_(id), node_(graph[id]) {
    for (const NodeId operand : node_.operands) out_.operands.emplace_back(static_cast<size_t>(graph.type(operand).rank()), -1);
    out_.result.assign(static_cast<size_t>(node_.type.rank()), -1);
    out_.linear.assign(node_.operands.size(), Linearity::none);
  }

  Factors run() {
    fill();
    for (std::vector<int>& operand : out_.operands)
      for (int& label : operand)
        if (label < 0) label = add({LabelKind::whole});
    return std::move(out_);
  }

 private:
  const Type& in(size_t k) const { return graph_.type(node_.operands[k]); }
  int add(FactorLabel label) {
    out_.labels.push_back(label);
    return static_cast<int>(out_.labels.size()) - 1;
  }
  // One label for an operand's axis and the result's.
  int keep(size_t operand, int axis, int result) {
    int& there = out_.result[static_cast<size_t>(result)];
    if (there < 0) there = add({LabelKind::keep});
    return out_.operands[operand][static_cast<size_t>(axis)] = there;
  }
  void set(size_t operand, int axis, FactorLabel label) { out_.operands[operand][static_cast<size_t>(axis)] = add(label); }
  void linear(Linearity how) { std::fill(out_.linear.begin(), out_.linear.end(), how); }

  void fill() {
    switch (node_.op) {
      case Op::input:
      case Op::param:
      case Op::state:
      case Op::constant:
      case Op::iota:
      case Op::random:
      case Op::training:
        return;
      case Op::map:
        return map();
      case Op::cast:  // exact where it widens
        if (is_floating(in(0).dtype) && is_floating(node_.type.dtype) && bytes_of(node_.type.dtype) >= bytes_of(in(0).dtype))
          linear(Linearity::each);
        return all_but(-1);
      case Op::dropout:
        return all_but(-1);
      case Op::stop_gradient:
      case Op::shift:
        linear(Linearity::each);
        return all_but(-1);
      case Op::reduce:
        return reduce(node_.as<ReduceAttr>());
      case Op::cumulate:
        return all_but(node_.as<CumulateAttr>().axis);
      case Op::top_k_index:
        return all_but(node_.as<TopKAttr>().axis);
      case Op::arg_reduce: {
        const int axis = node_.as<ArgReduceAttr>().axis;
        for (int i = 0, at = 0; i < in(0).rank(); ++i)
          if (i != axis) keep(0, i, at++);
        return;
      }
      case Op::softmax:
        return all_but(node_.as<ReduceAttr>().axes[0]);
      case Op::contract:
        return contract(node_.as<ContractAttr>());
      case Op::permute:
        linear(Linearity::each);
        for (int i = 0; i < in(0).rank(); ++i) keep(0, node_.as<PermuteAttr>().order[i], i);
        return;
      case Op::broadcast:
        linear(Linearity::each);
        for (int i = 0; i < in(0).rank(); ++i) keep(0, i, node_.as<BroadcastAttr>().map[i]);
        return;
      case Op::split:
        return groups(node_.as<SplitAttr>().counts, node_.type, false);
      case Op::merge:
        return groups(node_.as<MergeAttr>().counts, in(0), true);
      case Op::slice:
        linear(Linearity::each);
        return all_but(node_.as<SliceAttr>().axis);
      case Op::diagonal:
        return diagonal(node_.as<DiagonalAttr>().map);
      case Op::window:
      case Op::fold:
        return window(node_.as<WindowAttr>());
      case Op::pad:
        return pad(node_.as<PadAttr>());
      case Op::concat:
        linear(Linearity::together);
        return all_but(node_.as<ConcatAttr>().axis);
      case Op::gather:
        return gather(node_.as<GatherAttr>());
      case Op::scatter_add:
      case Op::scatter_max:
      case Op::scatter_min:
        return scatter(node_.as<GatherAttr>());
      case Op::scatter_set:
        return scatter_set(node_.as<GatherAttr>());
      case Op::scan:
        out_ = scan_factors(graph_, id_).factors;
        return;
      case Op::scan_result:
        return;
      case Op::logsumexp:
      case Op::all_reduce:
      case Op::reduce_scatter:
      case Op::all_gather:
      case Op::all_to_all:
        EINC_CHECK(false, "a partition meets {}", to_string(node_.op));
    }
  }

  // Axes stay where they are; that one is needed whole.
  void all_but(int axis) {
    for (size_t k = 0; k < node_.operands.size(); ++k)
      for (int i = 0; i < in(k).rank(); ++i)
        if (i != axis) keep(k, i, i);
  }

  void map() {
    const MapAttr& a = node_.as<MapAttr>();
    for (size_t k = 0; k < node_.operands.size(); ++k)
      for (int i = 0; i < in(k).rank(); ++i) keep(k, i, a.maps[k][i]);
    // A sum of sums is one sum, and a factor that is the same on all devices may be taken before the sum or after it. A divisor that is
    // a sum must be whole.
    if (a.fn == MapFn::add || a.fn == MapFn::sub) linear(Linearity::together);
    if (a.fn == MapFn::neg || a.fn == MapFn::mul) linear(Linearity::each);
    if (a.fn == MapFn::div) out_.linear[0] = Linearity::each;
  }

  void reduce(const ReduceAttr& a) {
    if (a.fn == ReduceFn::sum) linear(Linearity::each);
    for (int i = 0, at = 0; i < in(0).rank(); ++i)
      if (a.axes.contains(i))
        set(0, i, {LabelKind::combine, a.fn});
      else
        keep(0, i, at++);
  }

  void contract(const ContractAttr& a) {
    linear(Linearity::each);
    std::vector<int> summed(256, -1);  // by the label of a summed axis: any number that an AxisList can hold
    for (size_t k = 0; k < 2; ++k) {
      const AxisList& labels = k == 0 ? a.left : a.right;
      for (int i = 0; i < labels.size(); ++i) {
        if (labels[i] < node_.type.rank()) {
          keep(k, i, labels[i]);
          continue;
        }
        int& label = summed[static_cast<size_t>(labels[i])];
        if (label < 0) label = add({LabelKind::combine, ReduceFn::sum});
        out_.operands[k][static_cast<size_t>(i)] = label;
      }
    }
  }

  // A part of a merged axis is a part of the outermost axis in it, for that one varies slowest; the others stay whole. Axes of size 1
  // have no parts to give.
  void groups(const AxisList& counts, const Type& fine, bool merges) {
    linear(Linearity::each);
    int next = 0;
    for (int i = 0; i < counts.size(); ++i) {
      int outer = -1;
      for (int k = 0; k < counts[i]; ++k, ++next)
        if (outer < 0 && !(fine.axis(next).size == Poly(1))) outer = next;
      if (outer < 0) continue;
      if (merges)
        keep(0, outer, i);
      else
        keep(0, i, outer);
    }
  }

  void diagonal(const AxisList& map) {
    linear(Linearity::each);
    for (int i = 0; i < map.size(); ++i)
      if (std::count(map.begin(), map.end(), map[i]) == 1) keep(0, i, map[i]);
  }

  void window(const WindowAttr& a) {
    linear(Linearity::each);
    const int count = static_cast<int>(a.strides.size());
    const bool opens = node_.op == Op::window;
    for (int i = 0; i < in(0).rank(); ++i) {
      if (opens ? i == a.axis : i >= a.axis && i < a.axis + count) continue;
      keep(0, i, i < a.axis ? i : opens ? i - 1 + count : i + 1 - count);
    }
  }

  void pad(const PadAttr& a) {
    const Poly* value = std::get_if<Poly>(&a.value);
    const double* number = std::get_if<double>(&a.value);
    if ((value && value->is_zero()) || (number && *number == 0)) linear(Linearity::each);
    for (int i = 0; i < in(0).rank(); ++i)
      if (a.before[static_cast<size_t>(i)].is_zero() && a.after[static_cast<size_t>(i)].is_zero()) keep(0, i, i);
  }

  void gather(const GatherAttr& a) {
    out_.linear[0] = Linearity::each;
    for (int i = 0; i < in(0).rank(); ++i)
      if (i == a.axis)
        set(0, i, {LabelKind::rows, ReduceFn::sum});
      else
        keep(0, i, a.table_map[i]);
    for (int i = 0; i < in(1).rank(); ++i) keep(1, i, a.ids_map[i]);
  }

  // Operands: updates, ids; the result is the table.
  void scatter(const GatherAttr& a) {
    const ReduceFn fn = node_.op == Op::scatter_add ? ReduceFn::sum : node_.op == Op::scatter_max ? ReduceFn::max : ReduceFn::min;
    if (node_.op == Op::scatter_add) out_.linear[0] = Linearity::each;
    for (int i = 0; i < node_.type.rank(); ++i)
      if (i != a.axis) keep(0, a.table_map[i], i);
    if (node_.op == Op::scatter_add) out_.result[static_cast<size_t>(a.axis)] = add({LabelKind::rows, fn});
    for (int i = 0; i < in(1).rank(); ++i) {
      int& label = out_.operands[0][static_cast<size_t>(a.ids_map[i])];
      if (label < 0) label = add({LabelKind::combine, fn});
      out_.operands[1][static_cast<size_t>(i)] = label;
    }
  }

  // Operands: base, updates, ids. The last of equal places wins, so that the order of places matters: they stay whole.
  void scatter_set(const GatherAttr& a) {
    for (int i = 0; i < in(0).rank(); ++i) {
      if (i == a.axis) continue;
      keep(0, i, i);
      keep(1, a.table_map[i], i);
    }
    for (int i = 0; i < in(2).rank(); ++i)
      if (const int label = out_.operands[1][static_cast<size_t>(a.ids_map[i])]; label >= 0)
        out_.operands[2][static_cast<size_t>(i)] = label;
  }

  const Graph& graph_;
  const NodeId id_;
  const Node& node_;
  Factors out_;
};

}  // namespace

Factors factors_of(const Graph& graph, NodeId id) { return FactorBuilder(graph, id).run(); }

}  // namespace einc
