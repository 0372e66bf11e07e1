// SPDX-License-Identifier: Apache-2.0
// Types as written: what a declaration asks for, and what an annotation checks, renames and pins.
#include <algorithm>

#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/show.h"
#include "compiler/elaborate/suggest.h"

namespace einc {
namespace {

// Ops whose result dtype may be fixed in place; views and sources get a cast instead.
bool computes(const Node& node) {
  switch (node.op) {
    case Op::map:
    case Op::reduce:
    case Op::cumulate:
    case Op::contract:
    case Op::softmax:
    case Op::logsumexp:
      return true;
    case Op::input:
    case Op::param:
    case Op::state:
    case Op::constant:
    case Op::iota:
    case Op::random:
    case Op::arg_reduce:
    case Op::top_k_index:
    case Op::permute:
    case Op::broadcast:
    case Op::split:
    case Op::merge:
    case Op::slice:
    case Op::diagonal:
    case Op::window:
    case Op::fold:
    case Op::pad:
    case Op::concat:
    case Op::gather:
    case Op::scatter_add:
    case Op::scatter_max:
    case Op::scatter_min:
    case Op::scatter_set:
    case Op::cast:
    case Op::stop_gradient:
    case Op::scan:
    case Op::scan_result:
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::all_gather:
    case Op::all_to_all:
    case Op::shift:
    case Op::dropout:
    case Op::training:
      return false;
  }
  return false;
}

static_assert(kMaxRank == static_cast<int>(kMaxAxes), "the parser's limit is the graph's");

std::string written_axis(const ast::Axis& axis) {
  return axis.kind == ast::AxisKind::number ? "this axis" : "`" + axis.name.name.str() + "`";
}

}  // namespace

std::string Elaborator::show(const Axis& axis) const { return einc::show(graph_, axis); }
std::string Elaborator::show_name(const Axis& axis) const {
  return axis.name.empty() ? "without a name" : "`" + without_marks(axis.name).str() + "`";
}

std::string Elaborator::show(const Type& type) const { return einc::show(graph_, type); }

// ---- declarations

std::optional<Type> Elaborator::declared_type(const ast::Type& written) {
  Type type{written.dtype.value_or(DType::real), {}};
  bool whole = true;
  for (const ast::Axis& axis : written.axes) {
    if (axis.kind == ast::AxisKind::ellipsis) {
      if (frame().ellipsis) {
        type.axes.insert(type.axes.end(), frame().ellipsis->begin(), frame().ellipsis->end());
      } else {
        diagnostics_.report(Code::ellipsis_without_meaning, axis.span).hint("name the axes");
        whole = false;
      }
    } else if (auto declared = declared_axis(axis)) {
      const auto same = std::find_if(type.axes.begin(), type.axes.end(), [&](const Axis& other) { return other.name == declared->name; });
      if (declared->is_named() && same != type.axes.end() && !(same->size == declared->size)) {
        report_two_sizes_in_list(axis, same->size, declared->size);
        whole = false;
      }
      type.axes.push_back(std::move(*declared));
    } else {
      whole = false;
    }
  }
  if (whole && type.rank() > kMaxRank) {
    diagnostics_.report(Code::rank_too_large, written.span, kMaxRank);
    whole = false;
  }
  return whole ? std::optional(std::move(type)) : std::nullopt;
}

std::optional<Axis> Elaborator::declared_axis(const ast::Axis& axis) {
  if (axis.kind == ast::AxisKind::number) {
    const auto size = axis_size(*axis.size);
    return size ? std::optional(Axis{Name(), *size}) : std::nullopt;
  }
  const Name name = axis.name.name;
  if (axis.kind == ast::AxisKind::sized) {
    const auto size = axis_size(*axis.size);
    if (!size) return std::nullopt;
    if (const auto declared = declared_size(name); declared && !(*declared == *size)) {
      diagnostics_.report(Code::axis_is_declared, axis.span, name, describe_size(*declared), show_size(*size))
          .hint("give the local axis another name");
      return std::nullopt;
    }
    introduce_local(name, *size, axis.span);
    return Axis{name, *size};
  }
  if (const auto size = visible_size(name)) {
    if (frame().is_axis_parameter(name) && !check_at_least_one(*size, axis.span)) return std::nullopt;
    return Axis{name, *size};
  }
  if (const Binding* binding = frame().scope->find(name)) {  // a number by that name: an argument, a loop's index
    if (!binding->value) return std::nullopt;
    if (const auto* number = std::get_if<Number>(&binding->value->data);
        number && number->integer && std::holds_alternative<Poly>(number->value)) {
      const Poly size = std::get<Poly>(number->value);
      if (!check_at_least_one(size, axis.span)) return std::nullopt;
      return Axis{name, size};
    }
  }
  if (report_two_sizes(name, axis.span) || may_be_defined(name)) return std::nullopt;
  auto report = diagnostics_.report(Code::unknown_axis, axis.span, name);
  if (const auto near = near_name(name.str(), visible_axis_names()))
    report.did_you_mean(axis.name.span, *near);
  else
    report.hint("declare it, dim {} = 8, or give a local axis its size: {}=8", name, name);
  return std::nullopt;
}

Diagnostics::Builder Elaborator::report_two_sizes_in_list(const ast::Axis& axis, const Poly& first, const Poly& second) {
  auto report = diagnostics_.report(Code::axis_two_sizes, axis.span, axis.name.name, describe_size(first), describe_size(second));
  report.hint("give one of them a name of its own, such as `{}_2`", axis.name.name);
  return report;
}

// ---- annotations

// `y: [a ... b] = value`: sizes in order, names as written; what `...` stands for keeps its names.
std::optional<NodeId> Elaborator::annotate(NodeId value, const ast::Type& written, Span span, uint32_t first_new_node) {
  const Type found = build_.type(value);
  int ellipsis = -1;
  for (size_t i = 0; i < written.axes.size(); ++i)
    if (written.axes[i].kind == ast::AxisKind::ellipsis) ellipsis = static_cast<int>(i);
  const int named = static_cast<int>(written.axes.size()) - (ellipsis >= 0 ? 1 : 0);
  if (ellipsis < 0 ? named != found.rank() : named > found.rank()) {
    diagnostics_.report(Code::annotation_rank, span, show(found), counted(static_cast<size_t>(found.rank()), "axis"), named)
        .label(written.span, "{} written here", counted(static_cast<size_t>(named), "axis"));
    return std::nullopt;
  }
  std::vector<Axis> axes = found.axes;
  std::vector<NamedPlace> places;
  for (int next = 0; const ast::Axis& axis : written.axes) {
    if (axis.name) places.push_back({axis.name.name, next, axis.span});
    next += axis.kind == ast::AxisKind::ellipsis ? found.rank() - named : 1;
  }
  if (!check_places(found, places, "the annotation", span, false)) return std::nullopt;
  bool whole = true;
  int next = 0;
  std::unordered_map<Name, Poly> sizes;
  for (const ast::Axis& axis : written.axes) {
    if (axis.kind == ast::AxisKind::ellipsis) {
      next += found.rank() - named;
      continue;
    }
    Axis& target = axes[static_cast<size_t>(next++)];
    std::optional<Poly> expected;
    bool local = true;
    if (axis.kind == ast::AxisKind::named) {
      expected = declared_size(axis.name.name);
      local = !expected;
      if (!expected) expected = target.size;
    } else {
      expected = axis_size(*axis.size);
    }
    if (!expected) {
      whole = false;
      continue;
    }
    if (!(*expected == target.size)) {
      auto report = diagnostics_.report(Code::annotation_size, axis.span, show_name(target), describe_size(target.size), written_axis(axis),
                                        describe_size(*expected));
      report.label(span, "this is {}", show(found));
      if (axis.kind == ast::AxisKind::named) report.hint("give the axis a name of its own, such as `{}_2`", axis.name.name);
      if (axis.kind == ast::AxisKind::sized) report.hint("for all values of the dims it is `{}`", show(Axis{axis.name.name, target.size}));
      whole = false;
      continue;
    }
    if (axis.kind == ast::AxisKind::number) continue;
    if (const Poly& first = sizes.try_emplace(axis.name.name, target.size).first->second; !(first == target.size)) {
      report_two_sizes_in_list(axis, first, target.size).label(span, "this is {}", show(found));
      whole = false;
      continue;
    }
    if (local) introduce_local(axis.name.name, target.size, axis.span);
    target.name = axis.name.name;
  }
  if (!whole) return std::nullopt;
  std::optional<NodeId> result = value;
  if (written.dtype) result = conform_dtype(value, *written.dtype, written.dtype_span, first_new_node);
  return result ? std::optional(build_.rename(*result, std::move(axes))) : std::nullopt;
}

// An explicit dtype pins what computes the value; a value from elsewhere is cast.
std::optional<NodeId> Elaborator::conform_dtype(NodeId value, DType dtype, Span span, uint32_t first_new_node) {
  const DType found = build_.type(value).dtype;
  if (is_floating(found) != is_floating(dtype) && !(is_integer(found) && is_floating(dtype))) {
    diagnostics_.report(Code::dtype_mismatch, span, to_string(dtype), to_string(found)).hint("write cast(..., {})", to_string(dtype));
    return std::nullopt;
  }
  if ((found == DType::boolean) != (dtype == DType::boolean)) {
    diagnostics_.report(Code::dtype_mismatch, span, to_string(dtype), to_string(found)).hint("write cast(..., {})", to_string(dtype));
    return std::nullopt;
  }
  Node& node = graph_[value];
  if (value.index >= first_new_node && computes(node) && is_floating(found) && is_floating(dtype)) {
    node.type.dtype = dtype;
    node.origin.pinned = true;
    return value;
  }
  if (found == dtype) return value;
  const NodeId cast = build_.cast(value, dtype);
  graph_[cast].origin.pinned = true;
  return cast;
}

}  // namespace einc
