// SPDX-License-Identifier: Apache-2.0
// Where a node's operands are read: a view is arithmetic on indices.
#include <algorithm>

#include "compiler/fuse/evaluate.h"
#include "compiler/fuse/index_split.h"

namespace einc {

Indices KernelEvaluator::operand_index(NodeId id, size_t k, const Indices& at) {
  const Node& node = graph_[id];
  Indices in(graph_.shape(node.operands[k]).size());
  switch (node.op) {
    case Op::map: {
      const AxisList& map = node.as<MapAttr>().maps[k];
      for (int i = 0; i < map.size(); ++i) in[static_cast<size_t>(i)] = at[static_cast<size_t>(map[i])];
      return in;
    }
    case Op::reduce: {
      const AxisList& axes = node.as<ReduceAttr>().axes;
      const Indices& reduced = reduced_index(id, at);
      size_t kept = 0, summed = 0;
      for (size_t i = 0; i < in.size(); ++i) in[i] = axes.contains(static_cast<int>(i)) ? reduced[summed++] : at[kept++];
      return in;
    }
    case Op::permute: {
      const AxisList& order = node.as<PermuteAttr>().order;
      for (int i = 0; i < order.size(); ++i) in[static_cast<size_t>(order[i])] = at[static_cast<size_t>(i)];
      return in;
    }
    case Op::broadcast:
    case Op::diagonal: {
      const AxisList& map = node.op == Op::broadcast ? node.as<BroadcastAttr>().map : node.as<DiagonalAttr>().map;
      for (int i = 0; i < map.size(); ++i) in[static_cast<size_t>(i)] = at[static_cast<size_t>(map[i])];
      return in;
    }
    case Op::slice: {
      const SliceAttr& attr = node.as<SliceAttr>();
      const auto axis = static_cast<size_t>(attr.axis);
      in = at;
      in[axis] = in[axis] * attr.step;
      in[axis].affine.constant += graph_.value(attr.start);
      return in;
    }
    case Op::window: {
      const WindowAttr& attr = node.as<WindowAttr>();
      for (size_t i = 0, o = 0; i < in.size(); ++i) {
        if (static_cast<int>(i) != attr.axis) {
          in[i] = at[o++];
          continue;
        }
        for (const Poly& stride : attr.strides) in[i] = in[i] + at[o++] * graph_.value(stride);
      }
      return in;
    }
    case Op::split:
      return split_index(id, at);
    case Op::merge:
      return merge_index(id, at);
    case Op::cast:
    case Op::stop_gradient:
      return at;
    case Op::input:
    case Op::param:
    case Op::state:
    case Op::constant:
    case Op::iota:
    case Op::random:
    case Op::cumulate:
    case Op::arg_reduce:
    case Op::top_k_index:
    case Op::contract:
    case Op::fold:
    case Op::pad:
    case Op::concat:
    case Op::gather:
    case Op::scatter_add:
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
    case Op::softmax:
    case Op::logsumexp:
    case Op::dropout:
    case Op::training:
      break;
  }
  internal_error(__FILE__, __LINE__, fmt::format("{} reads its operands at many places", to_string(node.op)));
}

// out (h d) of in h d: each in axis is the row-major number of its parts.
Indices KernelEvaluator::split_index(NodeId id, const Indices& at) {
  const AxisList& counts = graph_[id].as<SplitAttr>().counts;
  const Shape& out = graph_.shape(id);
  Indices in;
  size_t o = 0;
  for (int count : counts) {
    Subscript whole;
    for (int k = 0; k < count; ++k, ++o) whole = whole * out[o] + at[o];
    in.push_back(whole);
  }
  return in;
}

Indices KernelEvaluator::merge_index(NodeId id, const Indices& at) {
  const AxisList& counts = graph_[id].as<MergeAttr>().counts;
  const Shape& from = graph_.shape(graph_[id].operands[0]);
  Indices in(from.size());
  size_t first = 0;
  for (int g = 0; g < counts.size(); ++g) {
    const auto count = static_cast<size_t>(counts[g]);
    Subscript rest = count == 0 ? Subscript() : at[static_cast<size_t>(g)];
    for (size_t k = count; k-- > 1;) {
      auto [quotient, remainder] = divide(rest, from[first + k]);
      in[first + k] = std::move(remainder);
      rest = std::move(quotient);
    }
    if (count > 0) in[first] = rest;
    first += count;
  }
  return in;
}

std::pair<Subscript, Subscript> KernelEvaluator::divide(const Subscript& index, int64_t divisor) {
  if (divisor == 1) return {index, Subscript()};
  // What is read at run time stays a term of the quotient where it comes in whole divisors: the number of a device's part does.
  Subscript::DynamicTerms whole_terms;
  for (const Subscript::Dynamic& d : index.dynamic)
    if (d.coefficient % divisor == 0) whole_terms.push_back({d.value, d.coefficient / divisor});
  if (whole_terms.size() == index.dynamic.size()) {
    if (const auto parts = einc::divide(index.affine, divisor, out_.kernel.axes)) {
      Subscript quotient(parts->quotient);
      quotient.dynamic = std::move(whole_terms);
      return {std::move(quotient), parts->remainder};
    }
    for (const Affine::Term& t : index.affine.terms) {
      const int64_t extent = out_.kernel.axes[t.axis].extent;
      if (t.coefficient > 0 && divisor % t.coefficient == 0) {
        const int64_t inner = divisor / t.coefficient;
        if (inner > 1 && inner < extent && extent % inner == 0) throw SplitNeeded{t.axis, inner};
      }
    }
  }
  const ValueId whole = value_of_index(index);
  Scalar part;
  part.dtype = DType::i64;
  part.operands.push_back(whole);
  part.integer = divisor;
  part.kind = ScalarKind::quotient;
  const ValueId quotient = add(part);
  part.kind = ScalarKind::remainder;
  return {Subscript::of_value(quotient), Subscript::of_value(add(part))};
}

ValueId KernelEvaluator::value_of_index(const Subscript& index) {
  Scalar v;
  v.kind = ScalarKind::index;
  v.dtype = DType::i64;
  v.index = index;
  return add(std::move(v));
}

const Indices& KernelEvaluator::reduced_index(NodeId reduce, const Indices& at) {
  uint64_t used = 0;
  for (const Subscript& i : at) {
    if (!i.dynamic.empty()) throw Refused{"a reduction at a position known only at run time"};
    for (const Affine::Term& t : i.affine.terms) used |= bit(t.axis);
  }
  const auto found = reduced_.find(reduce.index);
  if (found != reduced_.end()) {
    uint64_t own = 0;
    for (const Subscript& i : found->second)
      for (const Affine::Term& t : i.affine.terms) own |= bit(t.axis);
    if (own & used) throw Refused{"a reduction is wanted along its own loop"};
    return found->second;
  }
  const Node& node = graph_[reduce];
  const Shape& from = graph_.shape(node.operands[0]);
  Indices index;
  const AxisList axes = node.op == Op::reduce ? node.as<ReduceAttr>().axes : AxisList{node.as<ArgReduceAttr>().axis};
  for (int axis = 0; axis < static_cast<int>(from.size()); ++axis) {
    if (!axes.contains(axis)) continue;
    const int64_t extent = from[static_cast<size_t>(axis)];
    int unit = -1;
    for (int u = 0; u < space_.size() && unit < 0; ++u)
      if (space_.unit(u).extent == extent && (space_.unit(u).axes & used) == 0) unit = u;
    if (unit < 0) unit = space_.add(out_.kernel, extent, graph_.graph.type(node.operands[0]).axis(axis).name);
    used |= space_.unit(unit).axes;
    index.push_back(space_.unit(unit).index);
  }
  return reduced_.emplace(reduce.index, std::move(index)).first->second;
}

std::vector<AxisId> KernelEvaluator::loops(const Indices& index) const {
  std::vector<AxisId> axes;
  for (const Subscript& i : index)
    for (const Affine::Term& t : i.affine.terms) axes.push_back(t.axis);
  std::sort(axes.begin(), axes.end());
  return axes;
}

}  // namespace einc
