// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/build.h"

#include <utility>

namespace einc {
namespace {

std::vector<Axis> without(const std::vector<Axis>& axes, const AxisList& removed) {
  std::vector<Axis> kept;
  for (int i = 0; i < static_cast<int>(axes.size()); ++i)
    if (!removed.contains(i)) kept.push_back(axes[static_cast<size_t>(i)]);
  return kept;
}

Axis& at(std::vector<Axis>& axes, int i) { return axes[static_cast<size_t>(i)]; }

DType float_if_integer(DType d) { return is_floating(d) ? d : DType::real; }

}  // namespace

NodeId Builder::append(Node&& node) {
  EINC_CHECK(node.type.rank() <= kMaxRank, "rank {} exceeds {}", node.type.rank(), kMaxRank);
  for (NodeId operand : node.operands) EINC_CHECK(operand.index < graph_.size(), "operand {} does not exist yet", operand.index);
  graph_.nodes.push_back(std::move(node));
  return NodeId{graph_.size() - 1};
}

NodeId Builder::emit(Op op, Type type, std::span<const NodeId> operands, Attr attr) {
  Node node;
  node.op = op;
  node.type = std::move(type);
  node.operands.assign(operands.begin(), operands.end());
  node.attr = std::move(attr);
  node.origin = origin;
  return append(std::move(node));
}

NodeId Builder::input(Name name, Type type) { return emit(Op::input, std::move(type), {}, InputAttr{name}); }
NodeId Builder::param(ParamAttr attr, Type type) { return emit(Op::param, std::move(type), {}, std::move(attr)); }
NodeId Builder::state(StateAttr attr, Type type) { return emit(Op::state, std::move(type), {}, std::move(attr)); }
NodeId Builder::constant(ScalarValue value, DType dtype) { return emit(Op::constant, Type{dtype, {}}, {}, ConstantAttr{std::move(value)}); }
NodeId Builder::iota(Axis axis, DType dtype) { return emit(Op::iota, Type{dtype, {std::move(axis)}}, {}, {}); }
NodeId Builder::random(RandomAttr attr, Type type) { return emit(Op::random, std::move(type), {}, attr); }

DType Builder::map_dtype(MapFn fn, std::span<const DType> operands) {
  if (is_comparison(fn) || is_logical(fn)) return DType::boolean;
  const size_t first = fn == MapFn::where ? 1 : 0;
  DType d = operands[first];
  for (size_t i = first + 1; i < operands.size(); ++i) d = promote(d, operands[i]);
  switch (fn) {
    case MapFn::add:
    case MapFn::sub:
    case MapFn::mul:
    case MapFn::minimum:
    case MapFn::maximum:
    case MapFn::where:
    case MapFn::neg:
    case MapFn::abs:
    case MapFn::sign:
    case MapFn::relu:
    case MapFn::equal:
    case MapFn::not_equal:
    case MapFn::less:
    case MapFn::less_equal:
    case MapFn::greater:
    case MapFn::greater_equal:
    case MapFn::logical_and:
    case MapFn::logical_or:
    case MapFn::logical_not:
    case MapFn::floor_div:
    case MapFn::remainder:
    case MapFn::clamp:
    case MapFn::floor:
    case MapFn::ceil:
    case MapFn::round:
    case MapFn::trunc:
      return d;
    case MapFn::div:
    case MapFn::pow:
    case MapFn::exp:
    case MapFn::expm1:
    case MapFn::log:
    case MapFn::log1p:
    case MapFn::sqrt:
    case MapFn::rsqrt:
    case MapFn::sin:
    case MapFn::cos:
    case MapFn::tanh:
    case MapFn::sigmoid:
    case MapFn::erf:
    case MapFn::gelu:
    case MapFn::gelu_tanh:
    case MapFn::silu:
    case MapFn::softplus:
    case MapFn::tan:
    case MapFn::asin:
    case MapFn::acos:
    case MapFn::atan:
    case MapFn::atan2:
    case MapFn::sinh:
    case MapFn::cosh:
    case MapFn::erfc:
    case MapFn::erfinv:
    case MapFn::lgamma:
      return float_if_integer(d);
  }
  return d;
}

NodeId Builder::map(MapFn fn, std::span<const NodeId> operands, std::span<const AxisList> maps, std::vector<Axis> out_axes, DType dtype) {
  EINC_CHECK(static_cast<int>(operands.size()) == arity_of(fn) && maps.size() == operands.size(), "{} takes {} operands", to_string(fn),
             arity_of(fn));
  MapAttr attr{fn, {}};
  for (size_t k = 0; k < operands.size(); ++k) {
    const Type& t = type(operands[k]);
    EINC_CHECK(maps[k].size() == t.rank(), "{}: map of operand {} has {} entries for rank {}", to_string(fn), k, maps[k].size(), t.rank());
    for (int i = 0; i < t.rank(); ++i)
      EINC_CHECK(maps[k][i] < static_cast<int>(out_axes.size()) && at(out_axes, maps[k][i]).size == t.axis(i).size,
                 "{}: axis {} of operand {} does not fit", to_string(fn), i, k);
    attr.maps[k] = maps[k];
  }
  return emit(Op::map, Type{dtype, std::move(out_axes)}, operands, attr);
}

NodeId Builder::map(MapFn fn, std::initializer_list<NodeId> operands) {
  std::vector<DType> dtypes;
  NodeId shaped = *operands.begin();
  for (NodeId x : operands) {
    dtypes.push_back(type(x).dtype);
    if (type(x).rank() > type(shaped).rank()) shaped = x;
  }
  std::vector<AxisList> maps;
  for (NodeId x : operands) {
    EINC_CHECK(type(x).rank() == 0 || type(x).rank() == type(shaped).rank(), "{}: operands need explicit axis maps", to_string(fn));
    maps.push_back(AxisList::range(type(x).rank()));
  }
  const std::vector<NodeId> list(operands);
  return map(fn, list, maps, type(shaped).axes, map_dtype(fn, dtypes));
}

NodeId Builder::reduce(ReduceFn fn, NodeId x, AxisList axes) {
  const Type& t = type(x);
  for (int a : axes) EINC_CHECK(a < t.rank(), "reduce: no axis {}", a);
  const DType dtype = fn == ReduceFn::any || fn == ReduceFn::all ? DType::boolean : t.dtype;
  const NodeId operands[] = {x};
  return emit(Op::reduce, Type{dtype, without(t.axes, axes)}, operands, ReduceAttr{fn, axes});
}

NodeId Builder::cumulate(ReduceFn fn, NodeId x, int axis, Direction direction) {
  EINC_CHECK(axis >= 0 && axis < type(x).rank(), "cumulate: no axis {}", axis);
  const NodeId operands[] = {x};
  return emit(Op::cumulate, type(x), operands, CumulateAttr{fn, axis, direction});
}

NodeId Builder::arg_reduce(ReduceFn fn, NodeId x, int axis) {
  const Type& t = type(x);
  EINC_CHECK(axis >= 0 && axis < t.rank(), "arg_reduce: no axis {}", axis);
  const NodeId operands[] = {x};
  return emit(Op::arg_reduce, Type{DType::i32, without(t.axes, {axis})}, operands, ArgReduceAttr{fn, axis});
}

NodeId Builder::top_k_index(NodeId x, int axis, Poly k, ReduceFn fn) {
  Type out = type(x);
  EINC_CHECK(axis >= 0 && axis < out.rank(), "top_k_index: no axis {}", axis);
  out.dtype = DType::i32;
  at(out.axes, axis).size = std::move(k);
  const NodeId operands[] = {x};
  return emit(Op::top_k_index, std::move(out), operands, TopKAttr{axis, fn});
}

NodeId Builder::contract(NodeId left, NodeId right, AxisList left_labels, AxisList right_labels, int out_rank) {
  const Type &l = type(left), &r = type(right);
  EINC_CHECK(left_labels.size() == l.rank() && right_labels.size() == r.rank(), "contract: label counts differ from ranks");
  bool sums = false;
  for (int i = 0; i < l.rank(); ++i) {
    const int j = right_labels.find(left_labels[i]);
    EINC_CHECK(left_labels.find(left_labels[i]) == i, "contract: repeated label");
    EINC_CHECK(j < 0 ? left_labels[i] < out_rank : l.axis(i).size == r.axis(j).size, "contract: axis {} of the left operand does not fit",
               i);
    sums = sums || left_labels[i] >= out_rank;
  }
  for (int j = 0; j < r.rank(); ++j) {
    EINC_CHECK(right_labels.find(right_labels[j]) == j, "contract: repeated label");
    EINC_CHECK(right_labels[j] < out_rank || left_labels.contains(right_labels[j]),
               "contract: axis {} of the right operand is summed alone", j);
  }
  EINC_CHECK(sums, "contract: nothing is summed; build a map");
  Type out{promote(l.dtype, r.dtype), {}};
  for (int label = 0; label < out_rank; ++label) {
    const int i = left_labels.find(label), j = right_labels.find(label);
    EINC_CHECK(i >= 0 || j >= 0, "contract: output label {} is in no operand", label);
    out.axes.push_back(i >= 0 ? l.axis(i) : r.axis(j));
  }
  const NodeId operands[] = {left, right};
  return emit(Op::contract, std::move(out), operands, ContractAttr{left_labels, right_labels});
}

NodeId Builder::permute(NodeId x, AxisList order) {
  const Type& t = type(x);
  EINC_CHECK(order.size() == t.rank(), "permute: {} entries for rank {}", order.size(), t.rank());
  Type out{t.dtype, {}};
  for (int i = 0; i < order.size(); ++i) {
    EINC_CHECK(order.find(order[i]) == i && order[i] < t.rank(), "permute: not a permutation");
    out.axes.push_back(t.axis(order[i]));
  }
  const NodeId operands[] = {x};
  return emit(Op::permute, std::move(out), operands, PermuteAttr{order});
}

NodeId Builder::broadcast(NodeId x, AxisList map, std::vector<Axis> out_axes) {
  const Type& t = type(x);
  EINC_CHECK(map.size() == t.rank(), "broadcast: {} entries for rank {}", map.size(), t.rank());
  for (int i = 0; i < map.size(); ++i) {
    EINC_CHECK(map[i] < static_cast<int>(out_axes.size()) && (i == 0 || map[i - 1] < map[i]), "broadcast: map must increase");
    EINC_CHECK(at(out_axes, map[i]).size == t.axis(i).size, "broadcast: axis {} changes its size", i);
  }
  const NodeId operands[] = {x};
  return emit(Op::broadcast, Type{t.dtype, std::move(out_axes)}, operands, BroadcastAttr{map});
}

NodeId Builder::split(NodeId x, AxisList counts, std::vector<Axis> out_axes) {
  const Type& t = type(x);
  EINC_CHECK(counts.size() == t.rank(), "split: {} counts for rank {}", counts.size(), t.rank());
  int next = 0;
  for (int i = 0; i < t.rank(); ++i) {
    Poly product(1);
    for (int k = 0; k < counts[i]; ++k) product = product * at(out_axes, next++).size;
    EINC_CHECK(product == t.axis(i).size, "split: axis {} of size {} into {}", i, t.axis(i).size.str(), product.str());
  }
  EINC_CHECK(next == static_cast<int>(out_axes.size()), "split: {} axes made, {} named", next, out_axes.size());
  const NodeId operands[] = {x};
  return emit(Op::split, Type{t.dtype, std::move(out_axes)}, operands, SplitAttr{counts});
}

NodeId Builder::merge(NodeId x, AxisList counts, std::vector<Axis> out_axes) {
  const Type& t = type(x);
  EINC_CHECK(counts.size() == static_cast<int>(out_axes.size()), "merge: {} counts for {} axes", counts.size(), out_axes.size());
  int next = 0;
  for (int i = 0; i < counts.size(); ++i) {
    Poly product(1);
    for (int k = 0; k < counts[i]; ++k) product = product * t.axis(next++).size;
    EINC_CHECK(product == at(out_axes, i).size, "merge: axes of product {} into {}", product.str(), at(out_axes, i).size.str());
  }
  EINC_CHECK(next == t.rank(), "merge: {} of {} axes used", next, t.rank());
  const NodeId operands[] = {x};
  return emit(Op::merge, Type{t.dtype, std::move(out_axes)}, operands, MergeAttr{counts});
}

NodeId Builder::slice(NodeId x, int axis, Poly start, Poly size, int64_t step) {
  Type out = type(x);
  EINC_CHECK(axis >= 0 && axis < out.rank() && step != 0, "slice: no axis {}", axis);
  at(out.axes, axis).size = std::move(size);
  const NodeId operands[] = {x};
  return emit(Op::slice, std::move(out), operands, SliceAttr{axis, std::move(start), step});
}

NodeId Builder::diagonal(NodeId x, AxisList map) {
  const Type& t = type(x);
  EINC_CHECK(map.size() == t.rank(), "diagonal: {} entries for rank {}", map.size(), t.rank());
  Type out{t.dtype, {}};
  for (int i = 0; i < map.size(); ++i) {
    if (map[i] == out.rank()) out.axes.push_back(t.axis(i));
    EINC_CHECK(map[i] < out.rank() && out.axis(map[i]).size == t.axis(i).size, "diagonal: axis {} does not fit", i);
  }
  const NodeId operands[] = {x};
  return emit(Op::diagonal, std::move(out), operands, DiagonalAttr{map});
}

NodeId Builder::window(NodeId x, int axis, std::vector<Poly> strides, std::vector<Axis> new_axes) {
  const Type& t = type(x);
  EINC_CHECK(axis >= 0 && axis < t.rank() && strides.size() == new_axes.size(), "window: no axis {}", axis);
  Type out = t;
  const auto place = out.axes.begin() + axis;
  out.axes.insert(out.axes.erase(place), new_axes.begin(), new_axes.end());
  const NodeId operands[] = {x};
  return emit(Op::window, std::move(out), operands, WindowAttr{axis, std::move(strides)});
}

NodeId Builder::fold(NodeId x, int axis, std::vector<Poly> strides, Axis out_axis) {
  Type out = type(x);
  const int count = static_cast<int>(strides.size());
  EINC_CHECK(axis >= 0 && axis + count <= out.rank(), "fold: no axes {} to {}", axis, axis + count);
  const auto place = out.axes.begin() + axis;
  out.axes.insert(out.axes.erase(place, place + count), std::move(out_axis));
  const NodeId operands[] = {x};
  return emit(Op::fold, std::move(out), operands, WindowAttr{axis, std::move(strides)});
}

NodeId Builder::pad(NodeId x, std::vector<Poly> before, std::vector<Poly> after, ScalarValue value) {
  Type out = type(x);
  EINC_CHECK(before.size() == out.axes.size() && after.size() == out.axes.size(), "pad: one amount per axis");
  for (size_t i = 0; i < before.size(); ++i) out.axes[i].size = out.axes[i].size + before[i] + after[i];
  const NodeId operands[] = {x};
  return emit(Op::pad, std::move(out), operands, PadAttr{std::move(before), std::move(after), std::move(value)});
}

NodeId Builder::concat(std::span<const NodeId> parts, int axis) {
  EINC_CHECK(!parts.empty(), "concat of nothing");
  Type out = type(parts[0]);
  for (size_t k = 1; k < parts.size(); ++k) {
    const Type& t = type(parts[k]);
    EINC_CHECK(t.rank() == out.rank(), "concat: ranks differ");
    out.dtype = promote(out.dtype, t.dtype);
    for (int i = 0; i < t.rank(); ++i)
      if (i == axis)
        at(out.axes, i).size = out.axis(i).size + t.axis(i).size;
      else
        EINC_CHECK(t.axis(i).size == out.axis(i).size, "concat: axis {} differs", i);
  }
  return emit(Op::concat, std::move(out), parts, ConcatAttr{axis});
}

NodeId Builder::gather(NodeId table, NodeId ids, GatherAttr attr, std::vector<Axis> out_axes) {
  const NodeId operands[] = {table, ids};
  return emit(Op::gather, Type{type(table).dtype, std::move(out_axes)}, operands, attr);
}

NodeId Builder::scatter_add(NodeId updates, NodeId ids, GatherAttr attr, std::vector<Axis> table_axes) {
  const NodeId operands[] = {updates, ids};
  return emit(Op::scatter_add, Type{type(updates).dtype, std::move(table_axes)}, operands, attr);
}

NodeId Builder::scatter_extreme(Op op, NodeId updates, NodeId ids, GatherAttr attr, std::vector<Axis> table_axes) {
  EINC_CHECK(op == Op::scatter_max || op == Op::scatter_min, "{} keeps no extreme", to_string(op));
  const NodeId operands[] = {updates, ids};
  return emit(op, Type{type(updates).dtype, std::move(table_axes)}, operands, attr);
}

NodeId Builder::scatter_set(NodeId base, NodeId updates, NodeId ids, GatherAttr attr) {
  const NodeId operands[] = {base, updates, ids};
  return emit(Op::scatter_set, type(base), operands, attr);
}

NodeId Builder::cast(NodeId x, DType dtype) {
  const NodeId operands[] = {x};
  return emit(Op::cast, Type{dtype, type(x).axes}, operands, {});
}

NodeId Builder::stop_gradient(NodeId x) {
  const NodeId operands[] = {x};
  return emit(Op::stop_gradient, type(x), operands, {});
}

NodeId Builder::rename(NodeId x, std::vector<Axis> axes) {
  const Type& t = type(x);
  EINC_CHECK(axes.size() == t.axes.size(), "rename: rank changes");
  for (size_t i = 0; i < axes.size(); ++i) EINC_CHECK(axes[i].size == t.axes[i].size, "rename: axis {} changes its size", i);
  if (axes == t.axes) return x;
  const NodeId operands[] = {x};
  return emit(Op::permute, Type{t.dtype, std::move(axes)}, operands, PermuteAttr{AxisList::range(t.rank())});
}

NodeId Builder::scan(std::span<const NodeId> operands, ScanAttr attr) {
  return emit(Op::scan, Type{DType::i32, {}}, operands, std::move(attr));
}

NodeId Builder::scan_result(NodeId scan, int index, Name axis) {
  const ScanAttr attr = graph_[scan].as<ScanAttr>();
  Type type = attr.body->type(attr.body->updates[static_cast<size_t>(index)].target);
  if (index >= attr.carries) type.axes.insert(type.axes.begin(), Axis{axis, attr.length});
  const NodeId operands[] = {scan};
  return emit(Op::scan_result, std::move(type), operands, ScanResultAttr{index});
}

NodeId Builder::collective(Op op, NodeId x, CollectiveAttr attr) {
  const Poly& devices = graph_.mesh.axes[static_cast<size_t>(attr.mesh)].size;
  Type type = this->type(x);
  if (op == Op::all_gather || op == Op::all_to_all) type.axes[static_cast<size_t>(attr.gathered)].size *= devices;
  if (op == Op::reduce_scatter || op == Op::all_to_all) {
    Poly& size = type.axes[static_cast<size_t>(attr.divided)].size;
    size = divide(size, devices);
  }
  const NodeId operands[] = {x};
  return emit(op, std::move(type), operands, attr);
}

NodeId Builder::shift(NodeId x, int axis, int64_t by) {
  const NodeId operands[] = {x};
  return emit(Op::shift, type(x), operands, ShiftAttr{axis, by, -1});
}

NodeId Builder::softmax(NodeId x, int axis) {
  const NodeId operands[] = {x};
  return emit(Op::softmax, type(x), operands, ReduceAttr{ReduceFn::sum, {axis}});
}

NodeId Builder::logsumexp(NodeId x, AxisList axes) {
  const NodeId operands[] = {x};
  return emit(Op::logsumexp, Type{type(x).dtype, without(type(x).axes, axes)}, operands, ReduceAttr{ReduceFn::sum, axes});
}

NodeId Builder::dropout(NodeId x, double p, Name stream) {
  const NodeId operands[] = {x};
  return emit(Op::dropout, type(x), operands, DropoutAttr{p, stream});
}

NodeId Builder::training() { return emit(Op::training, Type{DType::boolean, {}}, {}, {}); }

NodeId Builder::drop_unit(NodeId x, int axis) {
  AxisList counts;
  std::vector<Axis> axes;
  for (int i = 0; i < type(x).rank(); ++i) {
    counts.push_back(i == axis ? 0 : 1);
    if (i != axis) axes.push_back(type(x).axis(i));
  }
  return split(x, counts, std::move(axes));
}

}  // namespace einc
