// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/indexing.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/elaborate/align.h"
#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/axis_ops.h"
#include "compiler/elaborate/numbers.h"
#include "compiler/elaborate/promote.h"
#include "compiler/elaborate/scope.h"
#include "compiler/symbolic/order.h"

namespace einc {
namespace {

// One item of a bracket, understood: positions known while compiling, a range of them, or a tensor of positions.
struct Position {
  enum class Kind : uint8_t { pick, slice, gather } kind = Kind::pick;
  int axis = 0;  // of the tensor as it stands before the bracket
  Span span;
  Poly start, size;  // pick, slice
  int64_t step = 1;  // slice
  NodeId ids;        // gather
};

// Positions that are negative for certain count from the end.
Poly from_start(const Poly& position, const Poly& size) {
  return !provably_at_least(position, Poly(0)) && provably_at_least(-position, Poly(1)) ? size + position : position;
}

bool never_holds(Context& context, Condition condition, Span span) {
  const Verdict verdict = decide(condition);
  if (verdict == Verdict::depends) context.require(std::move(condition), span);
  return verdict == Verdict::never;
}

std::optional<Poly> pick_position(Context& context, const Poly& position, const Axis& axis, Span span) {
  const Poly start = from_start(position, axis.size);
  if (!never_holds(context, {ConditionKind::in_range, start, axis.size, -1, "an index"}, span)) return start;
  auto report =
      context.diagnostics().report(Code::index_outside, span, position, without_marks(axis.name), context.describe_size(axis.size));
  if (const auto n = axis.size.as_integer()) report.hint("positions are 0 to {}, or -{} to -1 from the end", *n - 1, *n);
  return std::nullopt;
}

std::optional<Poly> slice_bound(Context& context, const ast::ExprPtr& expr, const Poly& otherwise, const Poly& size) {
  if (expr == nullptr) return otherwise;
  const auto value = context.evaluate(*expr);
  if (!value) return std::nullopt;
  if (const Poly* bound = integer_poly(*value)) return from_start(*bound, size);
  auto report = context.diagnostics().report(Code::slice_bound, expr->span, describe_value(context, *value));
  if (std::holds_alternative<NodeId>(value->data)) report.hint("at positions known only when running, gather: `x[axis = start + iota(n)]`");
  return std::nullopt;
}

std::optional<int64_t> slice_step(Context& context, const ast::ExprPtr& expr) {
  if (expr == nullptr) return 1;
  const auto value = context.evaluate(*expr);
  if (!value) return std::nullopt;
  const Poly* poly = integer_poly(*value);
  const auto step = poly != nullptr ? poly->as_integer() : std::nullopt;
  if (step && *step != 0 && *step > INT32_MIN && *step < INT32_MAX) return step;
  context.diagnostics().report(Code::slice_step, expr->span, describe_value(context, *value));
  return std::nullopt;
}

// Python's meaning: from low on, or for a negative step from the element before the end at most, as long as high is not reached. An open
// high is one before the first element then.
std::optional<Position> slice_position(Context& context, const ast::IndexItem& item, const Axis& axis, Position position) {
  const auto step = slice_step(context, item.step);
  const bool back = step.value_or(1) < 0;
  const auto low = slice_bound(context, item.low, back ? axis.size : Poly(0), axis.size);
  const auto high = slice_bound(context, item.high, back ? Poly(-1) : axis.size, axis.size);
  if (!step || !low || !high) return std::nullopt;
  position.kind = Position::Kind::slice;
  position.step = *step;
  const auto outside = [&](const Poly& bound, std::string_view what) {
    return never_holds(context, {ConditionKind::at_least, bound, Poly(0), -1, fmt::format("the {} of a slice", what)}, item.span) ||
           never_holds(context, {ConditionKind::at_least, axis.size, bound, -1, fmt::format("the {} of a slice", what)}, item.span);
  };
  if (outside(*low, "start") || (item.high != nullptr && outside(*high, "end"))) {
    context.diagnostics().report(Code::slice_outside, item.span, *low, *high, without_marks(axis.name), context.describe_size(axis.size));
    return std::nullopt;
  }
  position.start = back ? min_of(*low, axis.size - Poly(1)) : *low;
  const Poly reach = back ? position.start - *high : *high - position.start, stride(back ? -*step : *step);
  position.size = stride.is_one() ? reach : floor_divide(reach + stride - Poly(1), stride);
  if (never_holds(context, {ConditionKind::at_least, reach, Poly(1), -1, "the size of a slice"}, item.span)) {
    context.diagnostics()
        .report(Code::slice_empty, item.span, *low, *high, without_marks(axis.name))
        .hint("an axis has at least 1 element");
    return std::nullopt;
  }
  return position;
}

std::optional<Position> read_position(Context& context, const Type& type, const ast::IndexItem& item) {
  const auto axis = find_axis(context, type, item.axis.name, item.axis.span);
  Position position;
  position.span = item.span;
  if (item.kind == ast::IndexKind::slice) {
    if (!axis) return std::nullopt;
    position.axis = *axis;
    return slice_position(context, item, type.axis(*axis), position);
  }
  const auto value = context.evaluate(*item.at);
  if (!axis || !value) return std::nullopt;
  position.axis = *axis;
  position.span = item.at->span;
  if (const NodeId* node = std::get_if<NodeId>(&value->data)) {
    if (!check_ids(context, *node, item.at->span)) return std::nullopt;
    position.kind = Position::Kind::gather;
    position.ids = *node;
    return position;
  }
  if (const Poly* poly = integer_poly(*value)) {
    const auto start = pick_position(context, *poly, type.axis(*axis), item.at->span);
    if (!start) return std::nullopt;
    position.start = *start;
    position.size = Poly(1);
    return position;
  }
  context.diagnostics().report(Code::index_not_integer, item.at->span, describe_value(context, *value));
  return std::nullopt;
}

std::optional<std::vector<Position>> read_positions(Context& context, const Type& type, std::span<const ast::IndexItem> items) {
  std::vector<Position> positions;
  for (const ast::IndexItem& item : items)
    if (auto position = read_position(context, type, item)) positions.push_back(std::move(*position));
  if (positions.size() != items.size()) return std::nullopt;
  return positions;
}

// A tensor of positions for an item that is to be written at.
NodeId ids_of(Context& context, const Position& position, const Axis& axis) {
  Builder& build = context.build();
  if (position.kind == Position::Kind::gather) return position.ids;
  const DType dtype = index_dtype(context, axis.size);
  const NodeId start = build.constant(position.start, dtype);
  if (position.kind == Position::Kind::pick) return start;
  NodeId along = build.iota(Axis{axis.name, position.size}, dtype);
  if (position.step != 1) along = build.map(MapFn::mul, {along, build.constant(Poly(position.step), dtype)});
  return position.start.is_zero() ? along : build.map(MapFn::add, {along, start});
}

// The value in the dtype it is stored as.
std::optional<NodeId> stored(Context& context, NodeId value, DType dtype, Span span) {
  const DType from = context.build().type(value).dtype;
  if (is_floating(dtype) || from == dtype || (is_integer(from) && is_integer(dtype))) return convert(context.build(), value, dtype);
  context.diagnostics()
      .report(Code::update_dtype, span, to_string(from), to_string(dtype))
      .hint("cast it first: `cast(x, {})`", to_string(dtype));
  return std::nullopt;
}

// Writes at the first position of what the others select; all but the last are scalars.
std::optional<NodeId> write(Context& context, NodeId base, std::vector<Position> positions, NodeId value, Span span) {
  Builder& build = context.build();
  const Position position = positions.front();
  const Type type = build.type(base);
  const NodeId ids = ids_of(context, position, type.axis(position.axis));
  const int indexed[] = {position.axis};
  const auto plan = plan_gather(context, type, position.axis, build.type(ids), indexed, position.span);
  if (!plan) return std::nullopt;
  std::optional<NodeId> updates;
  if (positions.size() == 1) {
    updates = fit_axes(context, value, plan->out_axes, span);
  } else {
    positions.erase(positions.begin());
    for (Position& other : positions) other.axis -= other.axis > position.axis ? 1 : 0;
    updates = write(context, build.gather(base, ids, plan->attr, plan->out_axes), std::move(positions), value, span);
  }
  if (!updates) return std::nullopt;
  return build.scatter_set(base, *updates, ids, plan->attr);
}

}  // namespace

bool check_ids(Context& context, NodeId ids, Span span) {
  const DType dtype = context.build().type(ids).dtype;
  if (is_integer(dtype)) return true;
  auto report = context.diagnostics().report(Code::index_not_integer, span, context.show(context.build().type(ids)));
  if (dtype == DType::boolean)
    report.hint("to keep elements under a mask and clear the others, write `where(mask, x, 0)`");
  else
    report.hint("cast it first: `cast(i, i32)`");
  return false;
}

std::optional<GatherPlan> plan_gather(Context& context, const Type& table, int axis, const Type& ids, std::span<const int> indexed,
                                      Span span) {
  // Which table axis each axis of ids is, or -1.
  std::vector<int> shared;
  int new_axes = 0;
  for (int j = 0; j < ids.rank(); ++j) {
    int found = -1;
    for (int i = 0; i < table.rank(); ++i) {
      const bool is_indexed = i == axis || std::find(indexed.begin(), indexed.end(), i) != indexed.end();
      if (is_indexed || !ids.axis(j).is_named() || table.axis(i).name != ids.axis(j).name) continue;
      if (found >= 0 || std::find(shared.begin(), shared.end(), i) != shared.end()) {
        const Type& twice = found >= 0 ? table : ids;
        context.diagnostics()
            .report(Code::axis_repeated, span, without_marks(ids.axis(j).name), context.show(twice))
            .hint("rename one of the two first: `y: {} = ...`", suggest_annotation(twice.axes));
        return std::nullopt;
      }
      found = i;
    }
    if (found >= 0 && table.axis(found).size != ids.axis(j).size) {
      context.diagnostics()
          .report(Code::axis_sizes_differ, span, without_marks(ids.axis(j).name), context.describe_size(table.axis(found).size),
                  context.describe_size(ids.axis(j).size))
          .label(span, "{} indexes {}", context.show(ids), context.show(table))
          .hint("if these are two different axes, rename one: `y: {} = ...`", suggest_annotation(ids.axes, j));
      return std::nullopt;
    }
    shared.push_back(found);
    new_axes += found < 0 ? 1 : 0;
  }
  if (!check_rank(context, static_cast<size_t>(table.rank() - 1 + new_axes), span)) return std::nullopt;

  GatherPlan plan{GatherAttr{axis, {}, {}}, {}};
  std::vector<int> place(static_cast<size_t>(ids.rank()), 0);
  for (int i = 0; i < table.rank(); ++i) {
    if (i != axis) {
      plan.attr.table_map.push_back(static_cast<int>(plan.out_axes.size()));
      plan.out_axes.push_back(table.axis(i));
      continue;
    }
    plan.attr.table_map.push_back(kNoAxis);
    for (int j = 0; j < ids.rank(); ++j) {
      if (shared[static_cast<size_t>(j)] >= 0) continue;
      place[static_cast<size_t>(j)] = static_cast<int>(plan.out_axes.size());
      plan.out_axes.push_back(ids.axis(j));
    }
  }
  for (size_t j = 0; j < shared.size(); ++j) plan.attr.ids_map.push_back(shared[j] < 0 ? place[j] : plan.attr.table_map[shared[j]]);
  return plan;
}

std::optional<Value> index_tensor(Context& context, NodeId tensor, const ast::Index& index) {
  Builder& build = context.build();
  const auto positions = read_positions(context, build.type(tensor), index.items);
  if (!positions) return std::nullopt;
  const NodesFrom nodes_from(context, join(index.base->span, index.items.back().span));
  // Where each axis of the tensor is by now; -1 once it is gone.
  std::vector<int> now;
  for (int i = 0; i < build.type(tensor).rank(); ++i) now.push_back(i);
  const auto shift_behind = [&](int axis, int by) {
    for (int& position : now)
      if (position > axis) position += by;
  };
  for (const Position& position : *positions) {
    if (position.kind == Position::Kind::gather) continue;
    int& axis = now[static_cast<size_t>(position.axis)];
    const Poly& size = build.type(tensor).axis(axis).size;
    if (!position.start.is_zero() || position.size != size || position.step != 1)
      tensor = build.slice(tensor, axis, position.start, position.size, position.step);
    if (position.kind == Position::Kind::slice) continue;
    tensor = build.drop_unit(tensor, axis);
    const int dropped = axis;
    axis = -1;
    shift_behind(dropped, -1);
  }
  for (const Position& position : *positions) {
    if (position.kind != Position::Kind::gather) continue;
    std::vector<int> indexed;
    for (const Position& other : *positions)
      if (now[static_cast<size_t>(other.axis)] >= 0 && other.kind == Position::Kind::gather)
        indexed.push_back(now[static_cast<size_t>(other.axis)]);
    int& axis = now[static_cast<size_t>(position.axis)];
    const Type table = build.type(tensor);
    auto plan = plan_gather(context, table, axis, build.type(position.ids), indexed, position.span);
    if (!plan) return std::nullopt;
    const int grown = static_cast<int>(plan->out_axes.size()) - table.rank();
    tensor = build.gather(tensor, position.ids, plan->attr, std::move(plan->out_axes));
    const int gone = axis;
    axis = -1;
    shift_behind(gone, grown);
  }
  return Value{tensor};
}

std::optional<NodeId> write_indexed(Context& context, NodeId state, std::span<const ast::IndexItem> items, NodeId value, Span value_span) {
  Builder& build = context.build();
  auto positions = read_positions(context, build.type(state), items);
  if (!positions) return std::nullopt;
  const auto is_scalar = [&](const Position& position) {
    return position.kind == Position::Kind::pick || (position.kind == Position::Kind::gather && build.type(position.ids).rank() == 0);
  };
  std::stable_partition(positions->begin(), positions->end(), is_scalar);
  for (size_t k = 0; k + 1 < positions->size(); ++k)
    if (!is_scalar((*positions)[k])) {
      context.diagnostics()
          .report(Code::several_index_tensors, (*positions)[k + 1].span)
          .hint("write along one axis at a time; other positions are scalars");
      return std::nullopt;
    }
  const NodesFrom nodes_from(context, items[0].span);
  const auto updates = stored(context, value, build.type(state).dtype, value_span);
  return updates ? write(context, state, std::move(*positions), *updates, value_span) : std::nullopt;
}

std::optional<NodeId> fit_axes(Context& context, NodeId x, const std::vector<Axis>& axes, Span span) {
  Builder& build = context.build();
  const Type type = build.type(x);
  if (type.axes == axes) return x;
  const std::string target = context.show(Type{type.dtype, axes});
  std::vector<int> position;  // of each axis of x among `axes`
  for (int i = 0; i < type.rank(); ++i) {
    const Axis& axis = type.axis(i);
    std::vector<int> matches;
    for (size_t k = 0; k < axes.size(); ++k)
      if (axis.is_named() && axes[k].name == axis.name) matches.push_back(static_cast<int>(k));
    if (matches.empty()) {
      const Name name = without_marks(axis.name);
      auto report = context.diagnostics().report(Code::update_axis, span, name.empty() ? axis.size.str() : name.str(), target);
      if (axis.is_named()) report.hint("reduce the value, as in sum(..., {}), or declare the state with that axis", name);
      return std::nullopt;
    }
    if (matches.size() > 1 || std::find(position.begin(), position.end(), matches[0]) != position.end()) {
      context.diagnostics().report(Code::axis_repeated, span, without_marks(axis.name), matches.size() > 1 ? target : context.show(type));
      return std::nullopt;
    }
    const Poly& wanted = axes[static_cast<size_t>(matches[0])].size;
    if (wanted != axis.size) {
      context.diagnostics().report(Code::axis_sizes_differ, span, without_marks(axis.name), context.describe_size(axis.size),
                                   context.describe_size(wanted));
      return std::nullopt;
    }
    position.push_back(matches[0]);
  }
  AxisList order = AxisList::range(type.rank());
  std::vector<int> sorted(order.begin(), order.end());
  std::sort(sorted.begin(), sorted.end(),
            [&](int a, int b) { return position[static_cast<size_t>(a)] < position[static_cast<size_t>(b)]; });
  AxisList map;
  for (int i = 0; i < type.rank(); ++i) {
    order.set(i, sorted[static_cast<size_t>(i)]);
    map.push_back(position[static_cast<size_t>(sorted[static_cast<size_t>(i)])]);
  }
  if (!order.is_identity()) x = build.permute(x, order);
  return static_cast<size_t>(type.rank()) == axes.size() ? x : build.broadcast(x, map, axes);
}

}  // namespace einc
