// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/evaluate.h"

#include <algorithm>
#include <cmath>

namespace einc {
namespace {

DType stored_dtype(DType dtype) { return dtype == DType::real ? DType::f32 : dtype; }

// Sums of small floats are held in f32.
DType accumulator(DType dtype) { return is_floating(dtype) && dtype != DType::f64 ? DType::f32 : dtype; }

}  // namespace

Fold fold_of(ReduceFn fn) {
  switch (fn) {
    case ReduceFn::sum:
      return Fold::sum;
    case ReduceFn::max:
      return Fold::max;
    case ReduceFn::min:
      return Fold::min;
    case ReduceFn::prod:
      return Fold::prod;
    case ReduceFn::any:
      return Fold::any;
    case ReduceFn::all:
      return Fold::all;
    case ReduceFn::logsumexp:
      return Fold::logsumexp;
  }
  return Fold::sum;
}

ValueId KernelEvaluator::add(Scalar value) {
  value.dtype = stored_dtype(value.dtype);
  const bool shared = value.kind == ScalarKind::constant || value.kind == ScalarKind::load || value.kind == ScalarKind::index ||
                      value.kind == ScalarKind::reduction || value.kind == ScalarKind::in_range;
  std::vector<Scalar>& values = out_.kernel.values;
  if (shared)
    for (ValueId i = 0; i < values.size(); ++i)
      if (values[i] == value) return i;
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size() - 1);
}

// Integers never pass through a double, which holds those below 2^53 alone.
ValueId KernelEvaluator::constant(DType dtype, const ScalarValue& value) {
  Scalar v;
  v.dtype = stored_dtype(dtype);
  if (is_floating(v.dtype))
    v.real = graph_.value(value);
  else if (const Poly* whole = std::get_if<Poly>(&value))
    v.integer = graph_.value(*whole);
  else
    v.integer = static_cast<int64_t>(std::get<double>(value));
  return add(std::move(v));
}

uint16_t KernelEvaluator::buffer(NodeId id, BufferAccess access) {
  for (size_t b = 0; b < out_.buffers.size(); ++b) {
    if (out_.buffers[b] != id) continue;
    if (out_.kernel.buffers[b].access != access) out_.kernel.buffers[b].access = BufferAccess::read_write;
    return static_cast<uint16_t>(b);
  }
  out_.buffers.push_back(id);
  out_.kernel.buffers.push_back({stored_dtype(graph_[id].type.dtype), access, graph_.count_in_memory(id)});
  return static_cast<uint16_t>(out_.buffers.size() - 1);
}

Subscript KernelEvaluator::address(NodeId id, const Indices& at) const { return dot(id, at, graph_.strides(id)); }
Subscript KernelEvaluator::number(NodeId id, const Indices& at) const { return dot(id, at, strides_of(graph_.shape(id))); }

Subscript KernelEvaluator::dot(NodeId id, const Indices& at, const Shape& strides) const {
  Subscript sum;
  for (size_t i = 0; i < strides.size(); ++i)
    if (graph_.shape(id)[i] != 1) sum = sum + at[i] * strides[i];
  return sum;
}

ValueId KernelEvaluator::value_of(NodeId id, const Indices& at) {
  if (reads_again_) id = graph_.again_of(id);
  size_t& last = last_known_.try_emplace(id.index, kNone).first->second;  // stays where it is, as the map grows
  for (size_t i = last; i != kNone; i = known_[i].before)
    if (known_[i].at == at && known_[i].guards == guards_) return known_[i].value;
  if (out_.kernel.values.size() > 2000) throw Refused{"more than 2000 values"};
  const ValueId value = compute(id, at);
  known_.push_back({at, guards_, value, last});
  last = known_.size() - 1;
  return value;
}

ValueId KernelEvaluator::load(NodeId id, const Indices& at) {
  Scalar v;
  v.kind = ScalarKind::load;
  v.dtype = graph_[id].type.dtype;
  v.slot = buffer(id, BufferAccess::read);
  v.index = address(id, at);
  v.guards.assign(guards_.begin(), guards_.end());
  return add(std::move(v));
}

ValueId KernelEvaluator::compute(NodeId id, const Indices& at) {
  const Node& node = graph_[id];
  if (!computes(id)) return load(id, at);
  Scalar v;
  v.dtype = node.type.dtype;
  switch (node.op) {
    case Op::constant:
      return constant(node.type.dtype, node.as<ConstantAttr>().value);
    case Op::iota:
      v.kind = ScalarKind::index;
      v.index = at[0];
      return add(std::move(v));
    case Op::random:
      v.kind = ScalarKind::random;
      v.random = node.as<RandomAttr>().kind;
      v.real = node.as<RandomAttr>().keep;
      v.index = number(id, at);
      v.slot = static_cast<uint16_t>(out_.streams.size());
      for (size_t s = 0; s < out_.streams.size(); ++s)
        if (out_.streams[s] == id) v.slot = static_cast<uint16_t>(s);
      if (v.slot == out_.streams.size()) out_.streams.push_back(id);
      return add(std::move(v));
    case Op::cast:
      v.kind = ScalarKind::cast;
      v.operands.push_back(value_of(node.operands[0], at));
      return add(std::move(v));
    case Op::map:
      return map(id, at);
    case Op::reduce:
      return reduce(id, at);
    case Op::arg_reduce:
      return arg_reduce(id, at);
    case Op::contract:
      return contract(id, at);
    case Op::pad:
      return pad(id, at);
    case Op::concat:
      return concat(id, at);
    case Op::gather:
      return gather(id, at);
    case Op::fold:
      return fold(id, at);
    case Op::permute:
    case Op::broadcast:
    case Op::split:
    case Op::merge:
    case Op::slice:
    case Op::diagonal:
    case Op::window:
    case Op::stop_gradient:
      return value_of(node.operands[0], operand_index(id, 0, at));
    case Op::scatter_add:
      if (graph_.is_one_hot(id)) return one_hot(id, at);
      [[fallthrough]];
    case Op::cumulate:
    case Op::top_k_index:
    case Op::scatter_max:
    case Op::scatter_min:
    case Op::scatter_set:
    case Op::scan:
    case Op::scan_result:
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::all_gather:
    case Op::all_to_all:
    case Op::shift:
      throw Refused{std::string(to_string(node.op)) + " is a kernel of its own"};
    case Op::input:
    case Op::param:
    case Op::state:
    case Op::softmax:
    case Op::logsumexp:
    case Op::dropout:
    case Op::training:
      break;
  }
  internal_error(__FILE__, __LINE__, fmt::format("no value for {}", to_string(node.op)));
}

ValueId KernelEvaluator::map(NodeId id, const Indices& at) {
  const Node& node = graph_[id];
  Scalar v;
  v.kind = ScalarKind::map;
  v.dtype = node.type.dtype;
  v.fn = node.as<MapAttr>().fn;
  const auto operand = [&](size_t k) { v.operands.push_back(value_of(node.operands[k], operand_index(id, k, at))); };
  // A constant comes last, wherever the first of its uses has put it in the graph: the kernels of all layers are one.
  if (is_commutative(v.fn) && graph_.known[node.operands[0].index] && !graph_.known[node.operands[1].index]) {
    operand(1);
    operand(0);
    return add(std::move(v));
  }
  for (size_t k = 0; k < node.operands.size(); ++k) operand(k);
  if (divides_integers(v.fn) && !is_nonzero_constant(node.operands[1])) v.operands[1] = checked_divisor(id, at, v.operands[1]);
  return add(std::move(v));
}

// A number that is not 0, in all places. A cast may make 0 of one that is not: 0.5 as i32, 256 as u8.
bool KernelEvaluator::is_nonzero_constant(NodeId id) const {
  const Node& node = graph_[id];
  if (kind_of(node.op) == OpKind::view) return is_nonzero_constant(node.operands[0]);
  return node.op == Op::constant && graph_.value(node.as<ConstantAttr>().value) != 0;
}

ValueId KernelEvaluator::checked_divisor(NodeId division, const Indices& at, ValueId divisor) {
  const Indices in = operand_index(division, 1, at);
  Scalar v;
  v.kind = ScalarKind::checked;
  v.dtype = DType::i64;
  v.operands = {divisor};
  v.index = number(graph_[division].operands[1], in);
  v.guards.assign(guards_.begin(), guards_.end());
  v.slot = static_cast<uint16_t>(out_.sites.size());
  out_.sites.push_back(division);
  return add(std::move(v));
}

uint16_t KernelEvaluator::add_reduction(Accumulation reduction, std::vector<AxisId> axes) {
  if (out_.kernel.reductions.size() >= 60) throw Refused{"more than 60 reductions"};
  out_.kernel.reductions.push_back(reduction);
  reduction_axes.push_back(std::move(axes));
  return static_cast<uint16_t>(out_.kernel.reductions.size() - 1);
}

ValueId KernelEvaluator::reduction_result(uint16_t reduction, DType dtype) {
  Scalar v;
  v.kind = ScalarKind::reduction;
  v.dtype = dtype;
  v.slot = reduction;
  return add(std::move(v));
}

ValueId KernelEvaluator::reduce(NodeId id, const Indices& at) {
  if (!guards_.empty()) throw Refused{"a reduction inside a padded region"};
  const Node& node = graph_[id];
  const Indices in = operand_index(id, 0, at);
  Accumulation r{fold_of(node.as<ReduceAttr>().fn), value_of(node.operands[0], in), kNoValue, accumulator(node.type.dtype)};
  return reduction_result(add_reduction(r, loops(reduced_index(id, at))), node.type.dtype);
}

ValueId KernelEvaluator::arg_reduce(NodeId id, const Indices& at) {
  if (!guards_.empty()) throw Refused{"a reduction inside a padded region"};
  const Node& node = graph_[id];
  const ArgReduceAttr& attr = node.as<ArgReduceAttr>();
  const Indices& reduced = reduced_index(id, at);
  Indices in = at;
  in.insert(in.begin() + attr.axis, reduced[0]);
  Accumulation r{attr.fn == ReduceFn::max ? Fold::arg_max : Fold::arg_min, value_of(node.operands[0], in), value_of_index(reduced[0]),
                 DType::i64};
  return reduction_result(add_reduction(r, loops(reduced)), node.type.dtype);
}

ValueId KernelEvaluator::contract(NodeId id, const Indices& at) {
  if (!guards_.empty()) throw Refused{"a contraction inside a padded region"};
  if (contracts_ && allowed_ == Contractions::one) throw Refused{"two contractions"};
  contracts_ = true;
  const Node& node = graph_[id];
  const ContractAttr& attr = node.as<ContractAttr>();
  std::map<int, Subscript> summed;
  Indices loops_over;
  auto operand = [&](size_t k, const AxisList& labels) {
    const Shape& shape = graph_.shape(node.operands[k]);
    Indices in;
    for (int i = 0; i < labels.size(); ++i) {
      if (labels[i] < static_cast<int>(at.size())) {
        in.push_back(at[static_cast<size_t>(labels[i])]);
        continue;
      }
      auto found = summed.find(labels[i]);
      if (found == summed.end()) {
        const auto given = summed_.find({id.index, labels[i]});
        const auto loop = [&] {
          const Name name = graph_.graph.type(node.operands[k]).axis(i).name;
          return Subscript(space_.unit(space_.add(out_.kernel, shape[static_cast<size_t>(i)], name)).index);
        };
        found = summed.emplace(labels[i], given != summed_.end() ? given->second : loop()).first;
        loops_over.push_back(found->second);
      }
      in.push_back(found->second);
    }
    return value_of(node.operands[k], in);
  };
  const ValueId left = operand(0, attr.left), right = operand(1, attr.right);
  Scalar product;
  product.kind = ScalarKind::map;
  product.fn = MapFn::mul;
  product.dtype = accumulator(node.type.dtype);
  product.operands = {left, right};
  const ValueId value = add(std::move(product));
  const uint16_t reduction = add_reduction({Fold::sum, value, kNoValue, accumulator(node.type.dtype)}, loops(loops_over));
  products.push_back({id, reduction, left, right});
  return reduction_result(reduction, node.type.dtype);
}

// The node at `at` where the ranges hold, else `otherwise`; what it loads is not read elsewhere.
ValueId KernelEvaluator::guarded(const std::vector<Range>& ranges, ValueId otherwise, NodeId id, const Indices& at) {
  const size_t before = guards_.size();
  guards_.insert(guards_.end(), ranges.begin(), ranges.end());
  const ValueId inside = value_of(id, at);
  guards_.resize(before);
  Scalar test;
  test.kind = ScalarKind::in_range;
  test.dtype = DType::boolean;
  test.guards.assign(ranges.begin(), ranges.end());
  Scalar choice;
  choice.kind = ScalarKind::map;
  choice.fn = MapFn::where;
  choice.dtype = graph_[id].type.dtype;
  choice.operands = {add(std::move(test)), inside, otherwise};
  return add(std::move(choice));
}

ValueId KernelEvaluator::pad(NodeId id, const Indices& at) {
  const Node& node = graph_[id];
  const PadAttr& attr = node.as<PadAttr>();
  const Shape &inner = graph_.shape(node.operands[0]), &outer = graph_.shape(id);
  std::vector<Range> ranges;
  Indices in = at;
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] == outer[i]) continue;
    in[i].affine.constant -= graph_.value(attr.before[i]);
    ranges.push_back({in[i], 0, inner[i]});
  }
  if (ranges.empty()) return value_of(node.operands[0], at);
  if (!graph_.where_read.empty() && graph_.where_read[id.index]) {  // zeros: what a load is that its guards forbid
    guards_.insert(guards_.end(), ranges.begin(), ranges.end());
    const ValueId inside = value_of(node.operands[0], in);
    guards_.resize(guards_.size() - ranges.size());
    if (out_.kernel.values[inside].kind == ScalarKind::load) return inside;
  }
  return guarded(ranges, constant(node.type.dtype, attr.value), node.operands[0], in);
}

ValueId KernelEvaluator::concat(NodeId id, const Indices& at) {
  const Node& node = graph_[id];
  const auto axis = static_cast<size_t>(node.as<ConcatAttr>().axis);
  ValueId joined = zero(node.type.dtype);
  int64_t start = 0;
  for (NodeId part : node.operands) {
    const int64_t extent = graph_.shape(part)[axis];
    Indices in = at;
    in[axis].affine.constant -= start;
    joined = guarded({{in[axis], 0, extent}}, joined, part, in);
    start += extent;
  }
  Scalar v;
  v.kind = ScalarKind::cast;
  v.dtype = node.type.dtype;
  v.operands = {joined};
  return add(std::move(v));
}

ValueId KernelEvaluator::checked_position(NodeId node, NodeId ids, const Indices& at) {
  const GatherAttr& attr = graph_[node].as<GatherAttr>();
  const NodeId table = makes_table(graph_[node].op) ? node : graph_[node].operands[0];
  Indices in;
  for (int i = 0; i < attr.ids_map.size(); ++i) in.push_back(at[static_cast<size_t>(attr.ids_map[i])]);
  Scalar v;
  v.kind = ScalarKind::checked;
  v.dtype = DType::i64;
  v.operands = {value_of(ids, in)};
  v.integer = graph_.shape(table)[static_cast<size_t>(attr.axis)];
  v.index = number(ids, in);
  v.guards.assign(guards_.begin(), guards_.end());
  v.slot = static_cast<uint16_t>(out_.sites.size());
  out_.sites.push_back(node);
  return add(std::move(v));
}

ValueId KernelEvaluator::gather(NodeId id, const Indices& at) {
  const Node& node = graph_[id];
  const GatherAttr& attr = node.as<GatherAttr>();
  const Subscript position = Subscript::of_value(checked_position(id, node.operands[1], at));
  Indices in;
  for (int i = 0; i < attr.table_map.size(); ++i) in.push_back(i == attr.axis ? position : at[static_cast<size_t>(attr.table_map[i])]);
  return value_of(node.operands[0], in);
}

// The update where the position of its row is this one, else 0.
ValueId KernelEvaluator::one_hot(NodeId id, const Indices& at) {
  const Node& node = graph_[id];
  const GatherAttr& attr = node.as<GatherAttr>();
  Indices update(graph_.shape(node.operands[0]).size()), row;
  for (int i = 0; i < attr.table_map.size(); ++i)
    if (i != attr.axis) update[static_cast<size_t>(attr.table_map[i])] = at[static_cast<size_t>(i)];
  for (int i = 0; i < attr.ids_map.size(); ++i) row.push_back(update[static_cast<size_t>(attr.ids_map[i])]);
  Scalar is_it, value;
  is_it.kind = value.kind = ScalarKind::map;
  is_it.fn = MapFn::equal;
  is_it.dtype = DType::boolean;
  is_it.operands = {value_of(node.operands[1], row), value_of_index(at[static_cast<size_t>(attr.axis)])};
  value.fn = MapFn::where;
  value.dtype = node.type.dtype;
  value.operands = {add(std::move(is_it)), value_of(node.operands[0], update), zero(node.type.dtype)};
  return add(std::move(value));
}

// The adjoint of a window: the sum, over the window axes but the first, of the elements whose place is this one.
ValueId KernelEvaluator::fold(NodeId id, const Indices& at) {
  if (!guards_.empty()) throw Refused{"a reduction inside a padded region"};
  const Node& node = graph_[id];
  const WindowAttr& attr = node.as<WindowAttr>();
  const auto axis = static_cast<size_t>(attr.axis);
  const Shape& from = graph_.shape(node.operands[0]);
  Subscript rest = at[axis];
  Indices in(at.begin(), at.begin() + attr.axis), summed;
  in.resize(axis + 1);
  for (size_t k = 1; k < attr.strides.size(); ++k) {
    const int unit =
        space_.add(out_.kernel, from[axis + k], graph_.graph.type(node.operands[0]).axis(attr.axis + static_cast<int>(k)).name);
    summed.push_back(space_.unit(unit).index);
    rest = rest + Subscript(space_.unit(unit).index) * -graph_.value(attr.strides[k]);
    in.push_back(space_.unit(unit).index);
  }
  in.insert(in.end(), at.begin() + attr.axis + 1, at.end());
  const int64_t stride = graph_.value(attr.strides[0]);
  std::vector<Range> ranges{{rest, 0, stride * (from[axis] - 1) + 1}};
  in[axis] = rest;
  if (stride > 1) {
    // Only multiples of the first stride are places: the remainder must be 0. Negative values fail the range before.
    const ValueId whole = value_of_index(rest);
    Scalar part;
    part.dtype = DType::i64;
    part.operands.push_back(whole);
    part.integer = stride;
    part.kind = ScalarKind::remainder;
    ranges.push_back({Subscript::of_value(add(part)), 0, 1});
    part.kind = ScalarKind::quotient;
    in[axis] = Subscript::of_value(add(part));
  }
  const ValueId term = guarded(ranges, zero(node.type.dtype), node.operands[0], in);
  if (summed.empty()) return term;
  return reduction_result(add_reduction({Fold::sum, term, kNoValue, accumulator(node.type.dtype)}, loops(summed)), node.type.dtype);
}

}  // namespace einc
