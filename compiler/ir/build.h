// SPDX-License-Identifier: Apache-2.0
// Node constructors: each computes the result's type from its operands and appends one node. Misuse is an internal error;
// what a user may do wrong is diagnosed before these are called. No simplification happens here.
#pragma once
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }
  const Type& type(NodeId id) const { return graph_.type(id); }
  // Stamped on every node built from now on.
  Origin origin;

  NodeId input(Name name, Type type);
  NodeId param(ParamAttr attr, Type type);
  NodeId state(StateAttr attr, Type type);
  NodeId constant(ScalarValue value, DType dtype = DType::real);
  NodeId iota(Axis axis, DType dtype = DType::i32);
  NodeId random(RandomAttr attr, Type type);

  // Elementwise with explicit positions: out_axes are the result's; maps[k][i] is the output position of operand k's axis i.
  NodeId map(MapFn fn, std::span<const NodeId> operands, std::span<const AxisList> maps, std::vector<Axis> out_axes, DType dtype);
  // Elementwise of operands that have the same axes in the same order, or rank 0; dtype by the promotion rules.
  NodeId map(MapFn fn, std::initializer_list<NodeId> operands);
  // dtype an elementwise function gives for these operand dtypes (comparisons and logic: bool; where: of its last two).
  static DType map_dtype(MapFn fn, std::span<const DType> operands);

  NodeId reduce(ReduceFn fn, NodeId x, AxisList axes);
  NodeId cumulate(ReduceFn fn, NodeId x, int axis, Direction direction);
  NodeId arg_reduce(ReduceFn fn, NodeId x, int axis);
  NodeId top_k_index(NodeId x, int axis, Poly k, ReduceFn fn = ReduceFn::max);
  // Labels as in ContractAttr. Output axes take name and size from the left operand first, then the right.
  NodeId contract(NodeId left, NodeId right, AxisList left_labels, AxisList right_labels, int out_rank);

  NodeId permute(NodeId x, AxisList order);
  NodeId broadcast(NodeId x, AxisList map, std::vector<Axis> out_axes);
  // Splits and merges take the resulting axes (names and sizes) as given.
  NodeId split(NodeId x, AxisList counts, std::vector<Axis> out_axes);
  NodeId merge(NodeId x, AxisList counts, std::vector<Axis> out_axes);
  NodeId slice(NodeId x, int axis, Poly start, Poly size, int64_t step = 1);
  NodeId diagonal(NodeId x, AxisList map);
  NodeId window(NodeId x, int axis, std::vector<Poly> strides, std::vector<Axis> new_axes);
  NodeId fold(NodeId x, int axis, std::vector<Poly> strides, Axis out_axis);
  NodeId pad(NodeId x, std::vector<Poly> before, std::vector<Poly> after, ScalarValue value);
  NodeId concat(std::span<const NodeId> parts, int axis);
  NodeId gather(NodeId table, NodeId ids, GatherAttr attr, std::vector<Axis> out_axes);
  NodeId scatter_add(NodeId updates, NodeId ids, GatherAttr attr, std::vector<Axis> table_axes);
  NodeId scatter_extreme(Op op, NodeId updates, NodeId ids, GatherAttr attr, std::vector<Axis> table_axes);
  NodeId scatter_set(NodeId base, NodeId updates, NodeId ids, GatherAttr attr);
  NodeId cast(NodeId x, DType dtype);
  NodeId stop_gradient(NodeId x);
  // The same value with other axis names (sizes equal): sets names on a view when they differ, else returns x.
  NodeId rename(NodeId x, std::vector<Axis> axes);

  // Operands and attributes as at ScanAttr. A result's type is the body's state's, of collected values behind the scan's axis of that name.
  NodeId scan(std::span<const NodeId> operands, ScanAttr attr);
  NodeId scan_result(NodeId scan, int index, Name axis);

  // all_reduce, reduce_scatter, all_gather or all_to_all; the graph has the mesh.
  NodeId collective(Op op, NodeId x, CollectiveAttr attr);

  NodeId shift(NodeId x, int axis, int64_t by);

  NodeId softmax(NodeId x, int axis);
  NodeId logsumexp(NodeId x, AxisList axes);
  NodeId dropout(NodeId x, double p, Name stream);
  NodeId training();  // a bool: true in a training step

  // Removes an axis of size 1.
  NodeId drop_unit(NodeId x, int axis);

  NodeId append(Node&& node);

 private:
  NodeId emit(Op op, Type type, std::span<const NodeId> operands, Attr attr);
  Graph& graph_;
};

}  // namespace einc
