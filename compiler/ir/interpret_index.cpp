// SPDX-License-Identifier: Apache-2.0
// Gather and scatter of the interpreter. Positions come at run time, so every one is checked against its axis before use.
#include <algorithm>

#include "compiler/ir/interpret_ops.h"
#include "compiler/ir/print.h"
#include "compiler/ir/reduction_identity.h"
#include "runtime/base/failure.h"

namespace einc {
namespace {

// Which operands of the node are the table (invalid: the result), the positions and the values.
struct Roles {
  NodeId table_node, ids_node;
  const Tensor &table, &ids, &values;
};

[[noreturn]] void out_of_range(const Evaluation& e, const Roles& roles, int64_t index, int64_t value, int64_t bound) {
  const int axis = e.node.as<GatherAttr>().axis;
  const Type& type = roles.table_node.valid() ? e.graph.type(roles.table_node) : e.node.type;
  const Name name = type.axis(axis).name;
  const std::string table = roles.table_node.valid() ? " of '" + describe_node(e.graph, roles.table_node) + "'" : "";
  const std::string positions = describe_node(e.graph, roles.ids_node);
  throw FaultyElement(
      fmt::format("index out of range: '{}' at {} is {}, but axis {}{} has size {}{}", positions, describe_position(roles.ids.shape, index),
                  value, name.empty() ? std::to_string(axis) : "'" + name.str() + "'", table, bound,
                  describe_location(e.node.origin.location)),
      positions, index, e.options.iterations);
}

// Calls visit(offset in the values, offset in the table) for every element of the values, in row-major order.
template <class Visit>
void walk_indexed(const Evaluation& e, const Roles& roles, Visit visit) {
  const GatherAttr& attr = e.node.as<GatherAttr>();
  const size_t rank = roles.values.shape.size();
  std::array<std::vector<int64_t>, 3> strides{row_major_strides(roles.values.shape), std::vector<int64_t>(rank, 0),
                                              std::vector<int64_t>(rank, 0)};
  const std::vector<int64_t> table = row_major_strides(roles.table.shape), ids = row_major_strides(roles.ids.shape);
  for (int i = 0; i < attr.table_map.size(); ++i)
    if (i != attr.axis) strides[1][static_cast<size_t>(attr.table_map[i])] += table[static_cast<size_t>(i)];
  for (int i = 0; i < attr.ids_map.size(); ++i) strides[2][static_cast<size_t>(attr.ids_map[i])] += ids[static_cast<size_t>(i)];
  const int64_t bound = roles.table.shape[static_cast<size_t>(attr.axis)], step = table[static_cast<size_t>(attr.axis)];
  walk<3>(roles.values.shape, strides, {}, [&](const std::array<int64_t, 3>& at) {
    const int64_t position = roles.ids.ints[static_cast<size_t>(at[2])];
    if (position < 0 || position >= bound) out_of_range(e, roles, at[2], position, bound);
    visit(static_cast<size_t>(at[0]), static_cast<size_t>(at[1] + position * step));
  });
}

}  // namespace

void evaluate_gather(Evaluation& e) {
  const Roles roles{e.node.operands[0], e.node.operands[1], *e.in[0], *e.in[1], e.out};
  walk_indexed(e, roles, [&](size_t value, size_t place) {
    if (e.out.is_real())
      e.out.reals[value] = e.in[0]->reals[place];
    else
      e.out.ints[value] = e.in[0]->ints[place];
  });
}

void evaluate_scatter_add(Evaluation& e) {
  const Roles roles{NodeId{}, e.node.operands[1], e.out, *e.in[1], *e.in[0]};
  walk_indexed(e, roles, [&](size_t value, size_t place) {
    if (e.out.is_real())
      e.out.reals[place] += e.in[0]->reals[value];
    else
      e.out.ints[place] = wrap_integer(e.out.dtype, e.out.ints[place] + e.in[0]->ints[value]);
    ++e.counts.other;
  });
}

void evaluate_scatter_extreme(Evaluation& e) {
  const bool most = e.node.op == Op::scatter_max;
  const ReduceFn fn = most ? ReduceFn::max : ReduceFn::min;
  std::fill(e.out.reals.begin(), e.out.reals.end(), reduction_identity(e.node.type.dtype, fn));
  std::fill(e.out.ints.begin(), e.out.ints.end(), integer_identity(e.node.type.dtype, fn));
  const auto beats = [&](auto a, auto b) { return a != a || (most ? a > b : a < b); };  // NaN stays
  const Roles roles{NodeId{}, e.node.operands[1], e.out, *e.in[1], *e.in[0]};
  walk_indexed(e, roles, [&](size_t value, size_t place) {
    if (e.out.is_real())
      e.out.reals[place] = beats(e.out.reals[place], e.in[0]->reals[value]) ? e.out.reals[place] : e.in[0]->reals[value];
    else
      e.out.ints[place] = beats(e.out.ints[place], e.in[0]->ints[value]) ? e.out.ints[place] : e.in[0]->ints[value];
    ++e.counts.other;
  });
}

void evaluate_scatter_set(Evaluation& e) {
  e.out.reals = e.in[0]->reals;
  e.out.ints = e.in[0]->ints;
  const Roles roles{e.node.operands[0], e.node.operands[2], *e.in[0], *e.in[2], *e.in[1]};
  walk_indexed(e, roles, [&](size_t value, size_t place) {
    if (e.out.is_real())
      e.out.reals[place] = e.in[1]->reals[value];
    else
      e.out.ints[place] = e.in[1]->ints[value];
  });
}

}  // namespace einc
