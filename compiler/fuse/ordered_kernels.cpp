// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/ordered_kernels.h"

#include <limits>

#include "compiler/ir/reduction_identity.h"

namespace einc {
namespace {

class OrderedBuilder {
 public:
  OrderedBuilder(const BoundGraph& graph, const Group& group, LoopSpace& space, KernelEvaluator& evaluator, BuiltKernel& out)
      : graph_(graph),
        id_(group.members.front()),
        whole_(group.members.back()),
        base_(group.base),
        node_(graph[id_]),
        space_(space),
        evaluator_(evaluator),
        kernel_(out.kernel) {}

  // out[.. i ..] = fold of x[.. 0 ..] to x[.. i ..], along the axis or against it. The running value of floats is held in f64: in f32 its
  // rounding errors add up along the line (7e-6 of a sum of 200,000), and the chain of additions takes as long in either.
  void cumulate() {
    const CumulateAttr& attr = node_.as<CumulateAttr>();
    const auto axis = static_cast<size_t>(attr.axis);
    const Indices at = loops_over(graph_.shape(id_), node_.type);
    Indices place = at;
    if (attr.direction == Direction::reverse) {
      place[axis] = place[axis] * -1;
      place[axis].affine.constant += graph_.shape(id_)[axis] - 1;
    }
    const ValueId value = evaluator_.value_of(node_.operands[0], place);
    const DType dtype = node_.type.dtype;
    std::vector<AxisId> along = axes_of(at[axis]);
    const uint16_t r = evaluator_.add_reduction({fold_of(attr.fn), value, kNoValue, is_floating(dtype) ? DType::f64 : dtype}, along);
    Scalar running;
    running.kind = ScalarKind::running;
    running.dtype = dtype;
    running.slot = r;
    Stage stage{along, {r}, {store(place, evaluator_.add(running))}, true};
    outer_but(along);
    kernel_.stages.push_back(std::move(stage));
  }

  // zeros (or what is there), then out[.. ids ..] += updates, one after another along the axes of ids.
  void scatter_add() {
    const Indices at = loops_over(graph_.shape(node_.operands[0]), graph_[node_.operands[0]].type);
    Stage add = scatter(at, node_.operands[0], node_.operands[1], StoreMode::add);
    if (whole_ == id_)
      fill(at, evaluator_.zero(node_.type.dtype));
    else
      evaluator_.buffer(whole_, BufferAccess::read);
    kernel_.stages.push_back(std::move(add));
  }

  // The identity of max or min, then the extreme of each place and what falls on it.
  void scatter_extreme(StoreMode mode) {
    const Indices at = loops_over(graph_.shape(node_.operands[0]), graph_[node_.operands[0]].type);
    Stage fold = scatter(at, node_.operands[0], node_.operands[1], mode);
    fill(at, identity_of(node_.type.dtype, mode == StoreMode::max ? ReduceFn::max : ReduceFn::min));
    kernel_.stages.push_back(std::move(fold));
  }

  // base (or what is there), then out[.. ids ..] = updates.
  void scatter_set() {
    const Indices at = loops_over(graph_.shape(node_.operands[1]), graph_[node_.operands[1]].type);
    Stage set = scatter(at, node_.operands[1], node_.operands[2], StoreMode::set);
    if (!base_.valid()) {
      const Indices whole = table_index(at);
      fill_at(whole, evaluator_.value_of(node_.operands[0], whole));
    }
    kernel_.stages.push_back(std::move(set));
  }

  // Position j: the first of the largest (smallest) elements that come after position j-1 in descending (ascending) order, NaN above all.
  void top_k() {
    const bool descends = node_.as<TopKAttr>().fn == ReduceFn::max;
    const auto axis = static_cast<size_t>(node_.as<TopKAttr>().axis);
    const Indices at = loops_over(graph_.shape(id_), node_.type);
    const NodeId x = node_.operands[0];
    const int unit = space_.add(kernel_, graph_.shape(x)[axis], node_.type.axis(static_cast<int>(axis)).name);
    const Subscript candidate = space_.unit(unit).index;
    const std::vector<AxisId> rank_axes = axes_of(at[axis]);
    if (rank_axes.size() > 1) throw Refused{"the ranks of top_k are one loop"};

    Indices before = at, here = at, there = at;
    before[axis].affine.constant -= 1;
    here[axis] = candidate;
    const Range has_before{before[axis], 0, graph_.shape(id_)[axis]};
    Scalar previous;
    previous.kind = ScalarKind::load;
    previous.dtype = node_.type.dtype;
    previous.slot = evaluator_.buffer(id_, BufferAccess::read);
    previous.index = evaluator_.address(id_, before);
    previous.guards.push_back(has_before);
    const ValueId previous_position = evaluator_.add(previous);
    there[axis] = Subscript::of_value(previous_position);
    const ValueId value = evaluator_.value_of(x, here), last = evaluator_.value_of(x, there);
    Scalar position;
    position.kind = ScalarKind::index;
    position.dtype = DType::i64;
    position.index = candidate;
    const ValueId place = evaluator_.add(position);
    Scalar test;
    test.kind = ScalarKind::in_range;
    test.dtype = DType::boolean;
    test.guards.push_back(has_before);
    const ValueId later = map(MapFn::greater, DType::boolean, {place, previous_position});
    const ValueId is_nan = map(MapFn::not_equal, DType::boolean, {value, value}),
                  last_nan = map(MapFn::not_equal, DType::boolean, {last, last});
    const ValueId same =
        map(MapFn::logical_or, DType::boolean,
            {map(MapFn::equal, DType::boolean, {value, last}), map(MapFn::logical_and, DType::boolean, {is_nan, last_nan})});
    // NaN begins a descending order and ends an ascending one.
    const ValueId nan_changes = descends ? map(MapFn::logical_and, DType::boolean, {last_nan, negation(is_nan)})
                                         : map(MapFn::logical_and, DType::boolean, {is_nan, negation(last_nan)});
    const ValueId beyond_last = map(descends ? MapFn::less : MapFn::greater, DType::boolean, {value, last});
    const ValueId below = map(MapFn::logical_or, DType::boolean, {beyond_last, nan_changes});
    const ValueId follows = map(MapFn::logical_or, DType::boolean, {below, map(MapFn::logical_and, DType::boolean, {same, later})});
    const ValueId allowed = map(MapFn::logical_or, DType::boolean, {negation(evaluator_.add(test)), follows});
    const DType dtype = graph_[x].type.dtype;
    const ReduceFn fn = node_.as<TopKAttr>().fn;
    Scalar beyond;
    beyond.dtype = DType::i64;
    beyond.integer = std::numeric_limits<int64_t>::max();
    const ValueId nowhere = evaluator_.add(beyond);
    // Reductions to extremes prefer a NaN: in an ascending order they see numbers only.
    const ValueId seen = descends ? allowed : map(MapFn::logical_and, DType::boolean, {allowed, negation(is_nan)});
    const ValueId kept = map(MapFn::where, dtype, {seen, value, identity_of(dtype, fn)});
    const ValueId kept_position = map(MapFn::where, DType::i64, {seen, place, nowhere});
    const std::vector<AxisId> along = axes_of(candidate);
    const Fold fold = descends ? Fold::arg_max : Fold::arg_min;
    std::vector<uint16_t> found{evaluator_.add_reduction({fold, kept, kept_position, DType::i64}, along)};
    ValueId position_found = evaluator_.reduction_result(found[0], node_.type.dtype);
    if (!descends && is_floating(dtype)) {  // no number is left: the first NaN
      const ValueId nan_position =
          map(MapFn::where, DType::i64, {map(MapFn::logical_and, DType::boolean, {allowed, is_nan}), place, nowhere});
      found.push_back(evaluator_.add_reduction({Fold::min, nan_position, kNoValue, DType::i64}, along));
      const ValueId number_found = evaluator_.reduction_result(found[0], DType::i64);
      const ValueId none = map(MapFn::equal, DType::boolean, {number_found, nowhere});
      const ValueId chosen = map(MapFn::where, DType::i64, {none, evaluator_.reduction_result(found[1], DType::i64), number_found});
      Scalar narrowed;
      narrowed.kind = ScalarKind::cast;
      narrowed.dtype = node_.type.dtype;
      narrowed.operands = {chosen};
      position_found = evaluator_.add(std::move(narrowed));
    }
    kernel_.stages.push_back({along, found, {}, false});
    kernel_.stages.push_back({{}, {}, {store(at, position_found)}, false});
    if (!rank_axes.empty()) kernel_.sequence = rank_axes[0];
    std::vector<AxisId> inner = along;
    inner.insert(inner.end(), rank_axes.begin(), rank_axes.end());
    outer_but(inner);
  }

 private:
  Indices loops_over(const Shape& shape, const Type& type) {
    Indices at;
    for (size_t i = 0; i < shape.size(); ++i)
      at.push_back(space_.unit(space_.add(kernel_, shape[i], type.axis(static_cast<int>(i)).name)).index);
    return at;
  }

  static std::vector<AxisId> axes_of(const Subscript& index) {
    std::vector<AxisId> axes;
    for (const Affine::Term& t : index.affine.terms) axes.push_back(t.axis);
    return axes;
  }

  void outer_but(const std::vector<AxisId>& inner) {
    const uint64_t excluded = bits(inner);
    for (AxisId a = 0; a < kernel_.axes.size(); ++a)
      if (!(excluded >> a & 1)) kernel_.outer.push_back(a);
  }

  ValueId map(MapFn fn, DType dtype, std::initializer_list<ValueId> operands) {
    Scalar v;
    v.kind = ScalarKind::map;
    v.fn = fn;
    v.dtype = dtype;
    v.operands.assign(operands.begin(), operands.end());
    return evaluator_.add(std::move(v));
  }

  ValueId negation(ValueId x) { return map(MapFn::logical_not, DType::boolean, {x}); }

  ValueId identity_of(DType dtype, ReduceFn fn) {
    Scalar end;
    end.dtype = dtype;
    if (is_floating(dtype))
      end.real = reduction_identity(dtype, fn);
    else
      end.integer = integer_identity(dtype, fn);
    return evaluator_.add(std::move(end));
  }

  Store store(const Indices& place, ValueId value) {
    return {evaluator_.buffer(id_, BufferAccess::write), evaluator_.address(id_, place), value, StoreMode::set};
  }

  // The updates of a scatter, in order along the axes that ids have; the others are outer loops.
  Stage scatter(const Indices& at, NodeId updates, NodeId ids, StoreMode mode) {
    const GatherAttr& attr = node_.as<GatherAttr>();
    std::vector<AxisId> along;
    uint64_t in_table = 0;
    for (int i = 0; i < attr.table_map.size(); ++i)
      if (i != attr.axis)
        for (AxisId a : axes_of(at[static_cast<size_t>(attr.table_map[i])])) in_table |= bit(a);
    for (AxisId a = 0; a < kernel_.axes.size(); ++a)
      if (!(in_table >> a & 1)) along.push_back(a);
    Indices place = table_index(at);
    place[static_cast<size_t>(attr.axis)] = Subscript::of_value(evaluator_.checked_position(id_, ids, at));
    Store element{evaluator_.buffer(whole_, BufferAccess::write), evaluator_.address(id_, place), evaluator_.value_of(updates, at), mode};
    std::vector<AxisId> inner = axes_of(space_.unit(table_unit_).index);
    inner.insert(inner.end(), along.begin(), along.end());
    outer_but(inner);
    return {along, {}, {std::move(element)}, true};
  }

  // The table's index with a loop of its own along the indexed axis.
  Indices table_index(const Indices& at) {
    const GatherAttr& attr = node_.as<GatherAttr>();
    Indices place;
    for (int i = 0; i < attr.table_map.size(); ++i)
      place.push_back(i == attr.axis ? Subscript() : at[static_cast<size_t>(attr.table_map[i])]);
    if (table_unit_ < 0)
      table_unit_ = space_.add(kernel_, graph_.shape(id_)[static_cast<size_t>(attr.axis)], node_.type.axis(attr.axis).name);
    place[static_cast<size_t>(attr.axis)] = space_.unit(table_unit_).index;
    return place;
  }

  void fill(const Indices& at, ValueId value) { fill_at(table_index(at), value); }
  void fill_at(const Indices& place, ValueId value) {
    kernel_.stages.push_back({axes_of(space_.unit(table_unit_).index), {}, {store(place, value)}, false});
  }

  const BoundGraph& graph_;
  NodeId id_, whole_, base_;
  const Node& node_;
  LoopSpace& space_;
  KernelEvaluator& evaluator_;
  Kernel& kernel_;
  int table_unit_ = -1;
};

}  // namespace

bool is_ordered(const BoundGraph& graph, NodeId id) {
  const Op op = graph[id].op;
  return op == Op::cumulate || op == Op::top_k_index || (op == Op::scatter_add && !graph.is_one_hot(id)) || op == Op::scatter_max ||
         op == Op::scatter_min || op == Op::scatter_set;
}

void build_ordered_kernel(const BoundGraph& graph, const Group& group, LoopSpace& space, KernelEvaluator& evaluator, BuiltKernel& out) {
  OrderedBuilder builder(graph, group, space, evaluator, out);
  const Op op = graph[group.members.front()].op;
  if (op == Op::cumulate)
    builder.cumulate();
  else if (op == Op::top_k_index)
    builder.top_k();
  else if (op == Op::scatter_add)
    builder.scatter_add();
  else if (op == Op::scatter_max || op == Op::scatter_min)
    builder.scatter_extreme(op == Op::scatter_max ? StoreMode::max : StoreMode::min);
  else
    builder.scatter_set();
}

}  // namespace einc
