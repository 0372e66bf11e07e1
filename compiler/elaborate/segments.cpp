// SPDX-License-Identifier: Apache-2.0
// segment_sum(values, ids, nodes, axis, ...) and its like: what has id n is reduced into element n of the axis `nodes`. Values and ids are
// aligned by name; the named axes of the ids (all of them if none is named) are reduced, the others stay.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/axis_ops.h"
#include "compiler/elaborate/indexing.h"
#include "compiler/elaborate/promote.h"
#include "compiler/elaborate/reductions.h"
#include "compiler/elaborate/scope.h"

namespace einc {
namespace {

// The scatter that reduces values into segments, and the one that counts the ids of each.
struct SegmentPlan {
  GatherAttr attr, of_count;
  std::vector<Axis> axes, count_axes;  // of the results
  AxisList count_map;                  // where each axis of the counts is in the result
};

class SegmentCall {
 public:
  SegmentCall(Context& context, const ast::Call& call) : context_(context), call_(call) {}

  std::optional<Value> run() {
    if (!read() || !align()) return std::nullopt;
    const NodesFrom nodes_from(context_, span_of(call_));
    const std::string& name = call_.callee.name.str();
    if (name == "segment_sum") return Value{sum()};
    if (name == "segment_mean") return Value{mean()};
    Builder& build = context_.build();
    return Value{
        build.scatter_extreme(name == "segment_max" ? Op::scatter_max : Op::scatter_min, spread(values_), ids_, plan_.attr, plan_.axes)};
  }

 private:
  // values, ids, then the new axis: `name = size`, there or at the end, or the third positional argument; axes of the ids behind it.
  bool read() {
    const auto positional = positional_arguments(call_);
    const size_t keywords = call_.arguments.size() - positional.size();
    if (keywords > 1 || positional.size() < 3 - std::min<size_t>(keywords, 1)) {
      context_.diagnostics()
          .report(Code::builtin_arguments, span_of(call_), call_.callee.name, "values, ids and an axis", call_.arguments.size())
          .hint("write `{}(values, ids, nodes)`, or `nodes = 8` for an axis made here", call_.callee.name);
      return false;
    }
    const auto values = context_.evaluate_tensor(*positional[0]->value), ids = context_.evaluate_tensor(*positional[1]->value);
    const auto made = std::ranges::find_if(call_.arguments, [](const ast::Argument& argument) { return static_cast<bool>(argument.name); });
    const auto nodes = new_axis(context_, keywords > 0 ? *made : *positional[2]);
    if (!values || !ids || !nodes || !check_ids(context_, *ids, positional[1]->value->span)) return false;
    values_ = *values, ids_ = *ids, nodes_ = *nodes;
    spans_ = {positional[0]->value->span, positional[1]->value->span};
    const auto summed = axes_or_all(context_, context_.build().type(ids_), std::span(positional).subspan(keywords > 0 ? 2 : 3));
    if (summed) summed_ = *summed;
    return summed.has_value();
  }

  // The axes that updates have: those of the values, or of the ids where the values are one number.
  std::vector<Axis> update_axes() const {
    const Type& type = context_.build().type(values_);
    return type.rank() == 0 ? context_.build().type(ids_).axes : type.axes;
  }

  bool align() {
    const Type ids = context_.build().type(ids_), updates{context_.build().type(values_).dtype, update_axes()};
    AxisList place;  // of each axis of ids among those of the updates
    for (int j = 0; j < ids.rank(); ++j) {
      const Axis& axis = ids.axis(j);
      const bool known = std::any_of(updates.axes.begin(), updates.axes.end(), [&](const Axis& other) { return other.name == axis.name; });
      if (!known) {
        context_.diagnostics()
            .report(Code::segment_axes, spans_[0], context_.show(ids), without_marks(axis.name), context_.show(updates))
            .label(spans_[1], "the ids")
            .hint("a value for each id, or one number, is wanted");
        return false;
      }
      const auto found = find_axis(context_, updates, axis.name, spans_[0]);
      if (!found) return false;
      if (updates.axis(*found).size != axis.size) {
        context_.diagnostics()
            .report(Code::axis_sizes_differ, spans_[1], without_marks(axis.name), context_.describe_size(updates.axis(*found).size),
                    context_.describe_size(axis.size))
            .label(spans_[0], "{}", context_.show(updates));
        return false;
      }
      place.push_back(*found);
    }
    plan_.attr.ids_map = place;
    plan_.of_count.ids_map = AxisList::range(ids.rank());
    make_tables(updates, ids);
    const auto clash = std::count_if(plan_.axes.begin(), plan_.axes.end(), [&](const Axis& axis) { return axis.name == nodes_.name; });
    if (clash < 2) return check_rank(context_, plan_.axes.size(), span_of(call_));
    context_.diagnostics().report(Code::axis_exists, spans_[0], context_.show(updates), without_marks(nodes_.name));
    return false;
  }

  // `nodes` stands at the first summed axis' place.
  void make_tables(const Type& updates, const Type& ids) {
    const auto id_axis = [&](int position) { return plan_.attr.ids_map.find(position); };
    bool placed = false;
    const auto place_nodes = [&] {
      if (placed) return;
      plan_.attr.axis = static_cast<int>(plan_.axes.size()), plan_.of_count.axis = static_cast<int>(plan_.count_axes.size());
      plan_.attr.table_map.push_back(kNoAxis), plan_.of_count.table_map.push_back(kNoAxis);
      plan_.count_map.push_back(static_cast<int>(plan_.axes.size()));
      plan_.axes.push_back(nodes_), plan_.count_axes.push_back(nodes_);
      placed = true;
    };
    if (summed_.empty()) place_nodes();
    for (int i = 0; i < updates.rank(); ++i) {
      const int id = id_axis(i);
      if (id >= 0 && summed_.contains(id)) {
        place_nodes();
        continue;
      }
      if (id >= 0) {
        plan_.of_count.table_map.push_back(id);
        plan_.count_map.push_back(static_cast<int>(plan_.axes.size()));
        plan_.count_axes.push_back(ids.axis(id));
      }
      plan_.attr.table_map.push_back(i);
      plan_.axes.push_back(updates.axis(i));
    }
  }

  NodeId spread(NodeId values) {
    const std::vector<Axis> axes = context_.build().type(ids_).axes;
    return context_.build().type(values).rank() > 0 || axes.empty() ? values : context_.build().broadcast(values, {}, axes);
  }

  NodeId sum() {
    Builder& build = context_.build();
    const bool real = is_floating(build.type(values_).dtype);
    return build.scatter_add(spread(real ? values_ : convert(build, values_, DType::i64)), ids_, plan_.attr, plan_.axes);
  }

  // The sum over the number of ids, or over 1 where there is none.
  NodeId mean() {
    Builder& build = context_.build();
    const DType dtype = build.type(values_).dtype;
    const NodeId total = build.scatter_add(spread(widen(build, values_)), ids_, plan_.attr, plan_.axes);
    const NodeId one = build.constant(Poly(1), build.type(total).dtype);
    const NodeId count = build.scatter_add(spread(one), ids_, plan_.of_count, plan_.count_axes);
    const NodeId operands[] = {total, build.map(MapFn::maximum, {count, one})};
    const AxisList maps[] = {AxisList::range(static_cast<int>(plan_.axes.size())), plan_.count_map};
    return narrow(build, build.map(MapFn::div, operands, maps, plan_.axes, build.type(total).dtype), dtype);
  }

  Context& context_;
  const ast::Call& call_;
  NodeId values_, ids_;
  Axis nodes_;
  AxisList summed_;  // of the ids
  std::array<Span, 2> spans_;
  SegmentPlan plan_{GatherAttr{0, {}, {}}, GatherAttr{0, {}, {}}, {}, {}, {}};
};

}  // namespace

std::optional<Value> call_segment(Context& context, const ast::Call& call) { return SegmentCall(context, call).run(); }

}  // namespace einc
