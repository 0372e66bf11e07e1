// SPDX-License-Identifier: Apache-2.0
// Inputs, params, states, their updates, and outputs.
#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/indexing.h"
#include "compiler/elaborate/initializers.h"
#include "compiler/elaborate/suggest.h"

namespace einc {

// A declaration's name must be new: values may be rebound by `=`, but what is declared is declared once.
bool Elaborator::name_is_free(Name name, Span span, std::string_view what) {
  const SourceUnit& unit = *frame().unit;
  Span first;
  if (const auto it = frame().scope->bindings.find(name); it != frame().scope->bindings.end()) first = it->second.span;
  if (const auto it = unit.dims.find(name); it != unit.dims.end() && !frame().fn) first = it->second;
  if (const auto it = unit.fns.find(name); it != unit.fns.end() && !frame().fn) first = it->second.fn->name.span;
  if (!first.known()) return true;
  diagnostics_.report(Code::redefined, span, name, what).label(first, "first here");
  return false;
}

bool Elaborator::check_path_length(const std::string& path, Span span) {
  if (path.size() <= kMaxPathBytes) return true;
  diagnostics_.report(Code::path_too_long, span, kMaxPathBytes).hint("give the calls shorter names: f(...) as short");
  return false;
}

// The same path of two params or states: two calls with one instance name.
bool Elaborator::claim_path(const std::string& path, Span span, std::string_view what) {
  const Span place = frame().fn ? frame().call : span;
  if (!optimizer_dtype_ && !check_path_length(path, span)) return false;
  const auto [it, fresh] = paths_.emplace(path, place);
  if (fresh) return true;
  auto report = diagnostics_.report(Code::duplicate_path, place, path, what);
  report.label(it->second, "first made here");
  if (frame().fn) {
    if (!(place == span)) report.label(span, "declared here");
    report.hint("name the calls: {}(...) as {}_1, {}(...) as {}_2", frame().fn->name.name, frame().fn->name.name, frame().fn->name.name,
                frame().fn->name.name);
  }
  return false;
}

void Elaborator::declare_tensor(const ast::TensorDecl& declaration, Span span) {
  const Name name = declaration.name.name;
  const bool free = name_is_free(name, declaration.name.span,
                                 declaration.role == ast::Role::input   ? "an input"
                                 : declaration.role == ast::Role::state ? "a state"
                                                                        : "a param");
  auto type = declared_type(declaration.type);
  std::optional<Init> init;
  if (declaration.initializer) init = elaborate_initializer(*this, *declaration.initializer, declaration.type.dtype.value_or(DType::real));
  if (!free) return;
  BindingKind kind = BindingKind::input;
  NodeId node;
  build_.origin.location = locate(span);
  std::string path = join_path(frame().path, name.str());
  for (const int64_t index : frame().loop_indices) path += "." + std::to_string(index);
  if (declaration.role == ast::Role::input) {
    if (type) node = build_.input(name, std::move(*type));
  } else if (declaration.role == ast::Role::state) {
    kind = BindingKind::state;
    StateRole role = StateRole::user;
    if (optimizer_dtype_) {
      role = declaration.type.axes.empty() ? StateRole::scalar : StateRole::moment;
      if (type && !declaration.type.dtype) type->dtype = *optimizer_dtype_;
    }
    if (claim_path(path, declaration.name.span, "state") && type && init) {
      node = build_.state(StateAttr{Name(path), std::move(*init), role}, std::move(*type));
      states_.emplace(node.index, StateEntry{Name(path), declaration.name.span, {}});
    }
  } else {
    kind = BindingKind::param;
    if (type && !is_floating(type->dtype) && declaration.role == ast::Role::param) {
      diagnostics_.report(Code::param_not_floating, declaration.type.dtype_span, name, to_string(type->dtype))
          .hint("write `frozen param`, or a floating dtype");
      type.reset();
    }
    if (claim_path(path, declaration.name.span, "param") && type && init)
      node = build_.param(ParamAttr{Name(path), std::move(*init), declaration.role == ast::Role::frozen_param}, std::move(*type));
  }
  if (node.valid()) graph_[node].origin.label = name, note_declared_axes(node, declaration.type);
  Binding& binding = frame().scope->bindings[name];
  binding.kind = kind;
  binding.span = declaration.name.span;
  if (node.valid()) binding.value.emplace(Value{node});
}

void Elaborator::declare_output(const ast::Output& output) {
  const Name name = output.name.name;
  const uint32_t first_new = graph_.size();
  std::optional<NodeId> node;
  if (output.value) {
    if (!output.type)
      node = evaluate_tensor(*output.value);
    else if (const auto value = evaluate_whole(*output.value, &*output.type))
      node = std::get<NodeId>(value->data);
    if (const auto dim = frame().unit->dims.find(name); dim != frame().unit->dims.end())
      diagnostics_.report(Code::redefined, output.name.span, name, "an output").label(dim->second, "first here");
    else if (node)
      label_value(Value{*node}, name, first_new);
    Binding binding{std::nullopt, BindingKind::value, output.name.span};
    if (node) binding.value.emplace(Value{*node});
    frame().scope->assign(name, std::move(binding));
  } else {
    const auto value = evaluate_name(name, output.name.span);
    if (value) {
      if (const auto* tuple = std::get_if<Tuple>(&value->data))
        report_several(output.name.span, tuple->items.size());
      else
        node = to_tensor_alone(*this, *value, output.name.span);
    }
    if (node && output.type) node = annotate(*node, *output.type, output.name.span, first_new);
  }
  const auto [first, fresh] = outputs_.emplace(name, output.name.span);
  if (!fresh) {
    diagnostics_.report(Code::redefined, output.name.span, name, "an output")
        .label(first->second, "first here")
        .hint("give one of them another name");
    return;
  }
  if (node) graph_.outputs.push_back(Output{name, *node});
}

// ---- `s <- e`, `s[key = pos] <- e`

void Elaborator::update_state(const ast::StateUpdate& update, Span span) {
  Binding* binding = frame().scope->find(update.name.name);
  if (!binding) {
    evaluate(*update.value);
    report_unknown_name(update.name.name, update.name.span);
    return;
  }
  const NodeId* target = binding->value ? std::get_if<NodeId>(&binding->value->data) : nullptr;
  const auto entry = target ? states_.find(target->index) : states_.end();
  if (binding->value && entry == states_.end()) {
    diagnostics_.report(Code::not_a_state, update.name.span, update.name.name)
        .label(binding->span, "bound here")
        .hint("`{} = ...` binds a value", update.name.name);
    return;
  }
  if (!binding->value) {
    evaluate(*update.value);
    return;
  }
  const NodeId state = *target;
  const auto value = fit_update(state, update);
  if (!value) return;
  if (entry->second.update.known()) {
    diagnostics_.report(Code::updated_twice, span, entry->second.path)
        .label(entry->second.update, "first here")
        .hint("collect the new value first, then update the state once");
    return;
  }
  entry->second.update = span;
  graph_.updates.push_back(Update{state, *value});
}

// The new value with the state's axes in its order and its dtype.
std::optional<NodeId> Elaborator::fit_update(NodeId state, const ast::StateUpdate& update) {
  const auto given = evaluate(*update.value);
  if (!given) return std::nullopt;
  if (std::holds_alternative<Tuple>(given->data)) {
    report_several(update.value->span, std::get<Tuple>(given->data).items.size());
    return std::nullopt;
  }
  const Type type = build_.type(state);
  const auto value = to_tensor(*this, *given, type.dtype, update.value->span);
  if (!value) return std::nullopt;
  build_.origin.location = locate(update.name.span);
  if (!update.indices.empty()) return write_indexed(*this, state, update.indices, *value, update.value->span);
  const auto fitted = fit_axes(*this, *value, type.axes, update.value->span);
  if (!fitted || build_.type(*fitted).dtype == type.dtype) return fitted;
  return conform_dtype(*fitted, type.dtype, update.value->span, graph_.size());
}

// updated(s): the value that an update further up gives the state.
std::optional<Value> Elaborator::updated_state(const ast::Call& call, Span whole) {
  const auto* name = call.arguments.size() == 1 && !call.arguments[0].name ? call.arguments[0].value->as<ast::NameRef>() : nullptr;
  if (!name) {
    diagnostics_.report(Code::updated_arguments, whole).hint("write updated(s): what `s <- ...` above makes of the state s");
    return std::nullopt;
  }
  const auto value = evaluate_tensor(*call.arguments[0].value);
  if (!value) return std::nullopt;
  const Span span = call.arguments[0].value->span;
  const auto entry = states_.find(value->index);
  if (entry == states_.end()) {
    diagnostics_.report(Code::not_a_state, span, name->name).hint("`updated` takes the name of a state");
    return std::nullopt;
  }
  for (const Update& update : graph_.updates)
    if (update.target == *value) return Value{update.value};
  diagnostics_.report(Code::not_updated, span, entry->second.path)
      .label(entry->second.span, "declared here")
      .hint("write `{} <- ...` before, or read `{}`: it has the value from before the run", name->name, name->name);
  return std::nullopt;
}

}  // namespace einc
