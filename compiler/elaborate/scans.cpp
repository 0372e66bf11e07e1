// SPDX-License-Identifier: Apache-2.0
// `scan t in time { ... }`: the body is elaborated once, with marks in the place of the index and of what is carried, and then outlined
// (compiler/scan). A carry's type is that of its value before; a bare number takes the dtype and axes of its rebinding, which a trial of
// the body finds out.
#include <algorithm>

#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/indexing.h"
#include "compiler/elaborate/show.h"
#include "compiler/elaborate/suggest.h"
#include "compiler/scan/outline.h"

namespace einc {
namespace {

void add_targets(const ast::Block& body, std::vector<const ast::Identifier*>& names) {
  for (const ast::Stmt& statement : body.statements) {
    if (const auto* assigned = statement.as<ast::Assign>())
      for (const ast::Target& target : assigned->targets) names.push_back(&target.name);
    if (const auto* loop = statement.as<ast::For>()) add_targets(loop->body, names);
    if (const auto* choice = statement.as<ast::If>()) {
      add_targets(choice->then, names);
      if (choice->otherwise) add_targets(*choice->otherwise, names);
    }
    if (const auto* inner = statement.as<ast::Scan>()) {
      add_targets(inner->body, names);
      for (const ast::Stmt& s : inner->body.statements)
        if (const auto* collected = s.as<ast::Collect>()) names.push_back(&collected->name);
    }
    if (const auto* precision = statement.as<ast::Precision>(); precision && precision->body) add_targets(*precision->body, names);
  }
}

}  // namespace

struct Elaborator::Iteration {
  struct Carry {
    Name name;
    Span span;
    Value before;
    Type type;  // of a number: found by a trial
    bool number = false;
    NodeId initial, mark, next;
  };
  std::vector<Carry> carries;
  NodeId index;
  uint32_t first = 0;
  size_t customs = 0;  // calls with gradients of their own before it
  Collecting collecting;
  Scope scope;
};

// An axis or dim that is there, or a new axis with its size.
std::optional<Axis> Elaborator::scanned_axis(const ast::Scan& loop) {
  const Binding* value = loop.size || visible_size(loop.axis.name) ? nullptr : frame().scope->find(loop.axis.name);
  if (const auto* tensor = value && value->value ? std::get_if<NodeId>(&value->value->data) : nullptr) {
    auto report = diagnostics_.report(Code::unknown_axis, loop.axis.span, loop.axis.name);
    report.label(value->span, "a value, {}", show(build_.type(*tensor)));
    const std::vector<Axis>& axes = build_.type(*tensor).axes;
    if (!axes.empty() && axes[0].is_named())
      report.hint("a scan runs along an axis and reads the value by its index: scan {0} in {1} {{ ... {2}[{1} = {0}] ... }}",
                  loop.variable.name, without_marks(axes[0].name), loop.axis.name);
    else
      report.hint("a scan runs along a whole axis: for a length known only at run time, keep old values where(t < n, new, old)");
    return std::nullopt;
  }
  const auto size = loop.size ? axis_size(*loop.size) : size_of_name(loop.axis.name, loop.axis.span);
  if (!size) return std::nullopt;
  if (loop.size) introduce_local(loop.axis.name, *size, loop.axis.span);
  return Axis{loop.axis.name, *size};
}

// Names bound outside that the body binds again; nullopt when one of them has no value.
std::optional<std::vector<Name>> Elaborator::carried_names(const ast::Scan& loop) {
  std::vector<const ast::Identifier*> targets;
  add_targets(loop.body, targets);
  std::vector<Name> names;
  bool whole = true;
  for (const ast::Identifier* target : targets) {
    const Binding* binding = frame().scope->find(target->name);
    if (binding == nullptr || binding->kind == BindingKind::state || std::ranges::find(names, target->name) != names.end()) continue;
    whole = whole && (binding->value || finding_types_);
    if (binding->value && std::holds_alternative<Tuple>(binding->value->data)) {
      diagnostics_.report(Code::carry_of_several, target->span, target->name).label(binding->span, "bound here");
      whole = false;
    }
    names.push_back(target->name);
  }
  return whole ? std::optional(names) : std::nullopt;
}

// After an error: what the scan would have bound is unknown.
void Elaborator::poison_scan(const ast::Scan& loop) {
  poison_targets(loop.body);
  for (const ast::Stmt& statement : loop.body.statements)
    if (const auto* collected = statement.as<ast::Collect>(); collected && !frame().scope->find(collected->name.name))
      frame().scope->assign(collected->name.name, Binding{std::nullopt, BindingKind::value, collected->name.span});
}

void Elaborator::scan(const ast::Scan& loop, Span span) {
  const auto axis = scanned_axis(loop);
  const auto names = carried_names(loop);
  if (!axis || !names) return poison_scan(loop);
  Iteration iteration;
  bool numbers = false;
  for (const Name name : *names) {
    const Binding& binding = *frame().scope->find(name);
    // Within a trial a number may be unknown: any will do.
    Iteration::Carry carry{name, binding.span, binding.value.value_or(Value{Number{}}), {}, false, {}, {}, {}};
    if (const auto* node = std::get_if<NodeId>(&carry.before.data))
      carry.initial = *node, carry.type = graph_.type(*node);
    else
      carry.number = numbers = true;
    iteration.carries.push_back(std::move(carry));
  }
  if (numbers) find_number_types(loop, *axis, iteration);
  for (Iteration::Carry& carry : iteration.carries) {
    if (!carry.number) continue;
    const auto scalar = to_tensor(*this, carry.before, carry.type.dtype, carry.span);
    if (!scalar) return poison_scan(loop);
    const NodeId cast = build_.type(*scalar).dtype == carry.type.dtype ? *scalar : build_.cast(*scalar, carry.type.dtype);
    carry.initial = carry.type.rank() == 0 ? cast : build_.broadcast(cast, {}, carry.type.axes);
  }
  if (!run_iteration(loop, *axis, iteration) || !close_carries(iteration)) return poison_scan(loop);

  ScanDraft draft{
      iteration.first, iteration.index, {}, {}, *axis, loop.order == ast::ScanOrder::reversed ? Direction::reverse : Direction::forward};
  draft.save_every = loop.save_every.value_or(0);
  for (const Iteration::Carry& carry : iteration.carries) draft.carries.push_back({carry.mark, carry.initial, carry.next});
  for (const auto& [name, value] : iteration.collecting.values) draft.collected.push_back(value);
  const std::vector<CustomGradient> customs = custom_gradients_.take_from(iteration.customs);
  for (const CustomGradient& c : customs) draft.blocks.push_back({c.results, c.cotangents, c.inputs, c.gradients});
  build_.origin.location = locate(span);
  const OutlinedScan outlined = outline_scan(build_, draft);
  const std::vector<NodeId>& results = outlined.results;
  move_into_body(customs, outlined);
  for (size_t r = 0; r < results.size(); ++r) {
    const bool carried = r < iteration.carries.size();
    const auto& collected = iteration.collecting.values;
    const Name name = carried ? iteration.carries[r].name : collected[r - iteration.carries.size()].first.name;
    const Span where = carried ? iteration.carries[r].span : collected[r - iteration.carries.size()].first.span;
    graph_[results[r]].origin.label = name;
    if (carried) graph_[results[r]].type.axes = iteration.carries[r].type.axes;
    frame().scope->assign(name, Binding{Value{results[r]}, BindingKind::value, where});
  }
}

// Calls whose gradients the program writes itself: those that moved into the body are the body's from now on.
void Elaborator::move_into_body(const std::vector<CustomGradient>& customs, const OutlinedScan& scan) {
  std::vector<CustomGradient> moved;
  for (const CustomGradient& c : customs) {
    if (!scan.in_body.contains(c.results.front().index)) {
      if (graph_[c.results.front()].op == Op::permute) custom_gradients_.add(c);  // it stayed; what is neither is read by nobody
      continue;
    }
    CustomGradient inside = c;
    for (auto* nodes : {&inside.results, &inside.cotangents, &inside.inputs, &inside.gradients})
      for (NodeId& id : *nodes) id = scan.in_body.at(id.index);
    inside.first = UINT32_MAX, inside.last = 0;
    for (uint32_t i = c.first; i < c.last; ++i)
      if (const auto at = scan.in_body.find(i); at != scan.in_body.end()) {
        inside.first = std::min(inside.first, at->second.index);
        inside.last = std::max(inside.last, at->second.index + 1);
      }
    inside.first = std::min(inside.first, inside.last);
    moved.push_back(std::move(inside));
  }
  custom_gradients_.set_inside(scan.body, std::move(moved));
}

// Elaborates the body with marks; false after an error in it.
bool Elaborator::run_iteration(const ast::Scan& loop, const Axis& axis, Iteration& iteration) {
  const size_t errors = diagnostics_.error_count(), known = known_gradients_.size();
  iteration.first = graph_.size();
  iteration.customs = custom_gradients_.size();
  iteration.collecting = {axis.name, {}};
  iteration.scope = Scope{};
  iteration.scope.parent = frame().scope;
  iteration.index = build_.input(loop.variable.name, Type{DType::i32, {}});
  Binding& index = iteration.scope.bindings[loop.variable.name];
  index.value.emplace(iteration.index), index.kind = BindingKind::loop_index, index.span = loop.variable.span;
  for (Iteration::Carry& carry : iteration.carries) {
    carry.mark = build_.input(carry.name, carry.type);
    graph_[carry.mark].origin.label = carry.name;
    const bool unknown = finding_types_ && carry.number;
    Binding& binding = iteration.scope.bindings[carry.name];
    binding.kind = BindingKind::value, binding.span = carry.span;
    if (!unknown) binding.value.emplace(carry.mark);
  }
  Collecting* const outer = std::exchange(collecting_, &iteration.collecting);
  frame().scope = &iteration.scope;
  execute(loop.body);
  frame().scope = iteration.scope.parent;
  collecting_ = outer;
  known_gradients_.resize(known);
  return diagnostics_.error_count() == errors && !exhausted_;
}

// Elaborates the body with the numbers unknown and forgets it: beside values with a type, as in `z + h`, they take that type, and so do
// their rebindings.
void Elaborator::find_number_types(const ast::Scan& loop, const Axis& axis, Iteration& iteration) {
  const Graph graph = graph_;
  const auto streams = streams_;
  const auto paths = paths_;
  const auto states = states_;
  const auto loops = loop_ids_;
  const auto checked = checked_;
  const size_t customs = custom_gradients_.size();
  const Diagnostics said = diagnostics_;
  const bool outer = std::exchange(finding_types_, true);
  run_iteration(loop, axis, iteration);
  finding_types_ = outer;
  for (Iteration::Carry& carry : iteration.carries) {
    if (!carry.number) continue;
    const Number& before = std::get<Number>(carry.before.data);
    const std::optional<Value>& after = iteration.scope.bindings.at(carry.name).value;
    bool integer = before.integer;
    carry.type = Type{};
    if (const auto* number = after ? std::get_if<Number>(&after->data) : nullptr) integer = integer && number->integer;
    if (const auto* node = after ? std::get_if<NodeId>(&after->data) : nullptr)
      carry.type = graph_.type(*node);
    else
      carry.type.dtype = integer ? DType::i32 : DType::real;
  }
  DimTable dims = std::move(graph_.dims);  // conditions are required once
  graph_ = graph;
  graph_.dims = std::move(dims);
  streams_ = streams, paths_ = paths, states_ = states, loop_ids_ = loops, checked_ = checked;
  custom_gradients_.resize(customs);
  diagnostics_ = said;
}

// Of a call of which a part is unknown: an elementwise one has the type of its other values.
std::optional<Value> Elaborator::typical_operand(const ast::Call& call) {
  const std::string& name = call.callee.name.str();
  if (name != "where" && name != "min" && name != "max") return std::nullopt;
  std::optional<Value> known;
  for (const ast::Argument& argument : call.arguments) {
    const auto value = name == "where" && &argument == call.arguments.data() ? std::nullopt : evaluate(*argument.value);
    if (value && (!known || std::holds_alternative<Number>(known->data))) known = value;
  }
  return known;
}

bool Elaborator::close_carries(Iteration& iteration) {
  bool whole = true;
  for (Iteration::Carry& carry : iteration.carries) {
    const Binding& after = iteration.scope.bindings.at(carry.name);
    const auto next = after.value ? next_of_carry(carry.name, *after.value, after.span, carry.type) : std::nullopt;
    if (next) carry.next = *next;
    whole = whole && next;
  }
  return whole;
}

// The rebinding in the carry's order of axes.
std::optional<NodeId> Elaborator::next_of_carry(Name name, const Value& next, Span span, const Type& carried) {
  const auto node = to_tensor(*this, next, carried.dtype, span);
  if (!node) return std::nullopt;
  const Type found = build_.type(*node);
  if (found == carried) return node;
  AxisList order;
  for (const Axis& axis : carried.axes)
    for (int i = 0; i < found.rank(); ++i)
      if (found.axis(i) == axis && (axis.is_named() || order.size() == i) && !order.contains(i)) {
        order.push_back(i);
        break;
      }
  if (found.dtype == carried.dtype && order.size() == found.rank() && order.size() == carried.rank())
    return order.is_identity() ? *node : build_.permute(*node, order);
  diagnostics_.report(Code::carry_type, span, name, show(carried), show(found))
      .hint(found.dtype == carried.dtype ? "begin with a value of the same axes, as in `{} = zeros(...)`"
                                         : "cast one of the two to the other's dtype",
            name);
  return std::nullopt;
}

void Elaborator::collect(const ast::Collect& collected, Span) {
  const uint32_t first_new = graph_.size();
  const auto value = evaluate(*collected.value);
  if (!value || collecting_ == nullptr) return;
  const auto node = to_tensor_alone(*this, *value, collected.value->span);
  if (!node) return;
  if (frame().scope->find(collected.name.name) != nullptr) {
    diagnostics_.report(Code::collected_name, collected.name.span, collected.name.name);
    return;
  }
  for (const Axis& axis : build_.type(*node).axes)
    if (axis.is_named() && axis.name == collecting_->axis) {
      diagnostics_.report(Code::collected_axis, collected.value->span, axis.name).hint("reduce it, or give it another name first");
      return;
    }
  label_value(Value{*node}, collected.name.name, first_new);
  collecting_->values.emplace_back(collected.name, *node);
}

}  // namespace einc
