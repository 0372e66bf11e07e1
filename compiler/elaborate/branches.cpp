// SPDX-License-Identifier: Apache-2.0
// The branches of an `if`, by the condition's value in a training step and elsewhere (conditions.cpp):
//   equal:      the branch taken is elaborated like any statements; the other is tried once and taken back, for its errors
//   different:  both are elaborated, and what they bind or update differently becomes where(training, a, b)
#include <algorithm>

#include "compiler/elaborate/elaborator.h"

namespace einc {
namespace {

// Errors that other values of the condition would not give: a slice that `if n > 3` keeps inside its axis.
bool follows_from_values(Code code) {
  static constexpr Code kCodes[] = {Code::index_outside,     Code::slice_outside,       Code::slice_empty,      Code::top_k_too_large,
                                    Code::size_below_one,    Code::pattern_window_room, Code::inexact_division, Code::condition_never,
                                    Code::division_by_zero,  Code::bad_trip_count,      Code::pad_amounts,      Code::dim_value,
                                    Code::pattern_given_size};
  return std::ranges::find(kCodes, code) != std::end(kCodes);
}

constexpr std::string_view kNumber = "a number";

// The names that statements bind for those behind them.
void add_bound_names(const ast::Block& block, std::unordered_map<Name, Span>& names) {
  for (const ast::Stmt& statement : block.statements) {
    if (const auto* declared = statement.as<ast::TensorDecl>()) names.emplace(declared->name.name, declared->name.span);
    if (const auto* assigned = statement.as<ast::Assign>())
      for (const ast::Target& target : assigned->targets) names.emplace(target.name.name, target.name.span);
    if (const auto* precision = statement.as<ast::Precision>(); precision && precision->body) add_bound_names(*precision->body, names);
    if (const auto* scan = statement.as<ast::Scan>()) {
      for (const ast::Stmt& inner : scan->body.statements)
        if (const auto* collected = inner.as<ast::Collect>()) names.emplace(collected->name.name, collected->name.span);
      // A carry is bound outside already, so that its name is known; names of the body end with it.
    }
    if (const auto* inner = statement.as<ast::If>()) {
      add_bound_names(inner->then, names);
      if (inner->otherwise) add_bound_names(*inner->otherwise, names);
    }
  }
}

// Of Elaborator::type_text: a number becomes a scalar beside one, and a value without a written dtype takes another's.
bool is_one_type(const std::string& a, const std::string& b) {
  const auto scalar = [](const std::string& text) { return text == kNumber || text.ends_with("[]"); };
  const auto real_beside_floating = [](const std::string& real, const std::string& other) {
    const size_t axes = other.find('[');
    if (!real.starts_with('[') || axes == std::string::npos || other.substr(axes) != real) return false;
    const auto dtype = parse_dtype(std::string_view(other).substr(0, axes));
    return dtype && is_floating(*dtype);
  };
  return a == b || real_beside_floating(a, b) || real_beside_floating(b, a) || (scalar(a) && scalar(b) && (a == kNumber || b == kNumber));
}

}  // namespace

void Elaborator::branch(const ast::If& statement) {
  const auto truth = truth_of(*statement.condition);
  const ast::Block *then = &statement.then, *otherwise = statement.otherwise ? &*statement.otherwise : nullptr;
  if (!truth) {  // which one is meant is unknown: what they bind is, too
    std::unordered_map<Name, Span> names;
    for (const ast::Block* block : {then, otherwise}) {
      if (block == nullptr) continue;
      check_branch(block);
      add_bound_names(*block, names);
    }
    for (const auto& [name, span] : names)
      if (const Binding* bound = frame().scope->find(name); !bound || bound->kind != BindingKind::state)
        frame().scope->assign(name, Binding{std::nullopt, BindingKind::value, span});
    return;
  }
  if (truth->training == truth->otherwise) return truth->training ? take_branch(then, otherwise) : take_branch(otherwise, then);
  if (truth->training) return merge_branches(then, otherwise, statement.condition->span);
  merge_branches(otherwise, then, statement.condition->span);
}

// Elaborates a branch; what it binds stays its own.
Elaborator::Branch Elaborator::run_branch(const ast::Block* block) {
  Branch done;
  if (block == nullptr) return done;
  checked_.insert(block);
  const size_t first_update = graph_.updates.size();
  Scope scope;
  scope.parent = frame().scope;
  scope.is_branch = true;
  frame().scope = &scope;
  execute(*block);
  frame().scope = scope.parent;
  done.bindings = std::move(scope.bindings);
  done.updates.assign(graph_.updates.begin() + static_cast<std::ptrdiff_t>(first_update), graph_.updates.end());
  return done;
}

// Elaborates a branch that is not taken, once, and takes everything back but its errors. The bindings' types remain, as text.
std::unordered_map<Name, std::string> Elaborator::check_branch(const ast::Block* block) {
  if (block == nullptr || !checked_.insert(block).second) return {};
  const auto paths = paths_;
  const auto streams = streams_;
  const auto states = states_;
  const auto loop_ids = loop_ids_;
  const Origin origin = build_.origin;
  Graph before;
  before.dims = graph_.dims;
  before.chosen_by = graph_.chosen_by;
  const size_t nodes = graph_.nodes.size(), updates = graph_.updates.size(), plans = graph_.plans.size(), loops = graph_.loops.size(),
               contexts = graph_.loop_contexts.size(), customs = custom_gradients_.size(), known = known_gradients_.size(),
               said = diagnostics_.list().size();
  const Branch tried = run_branch(block);
  std::unordered_map<Name, std::string> types;
  for (const auto& [name, binding] : tried.bindings) types.emplace(name, binding.value ? type_text(*binding.value) : "");
  diagnostics_.revise(said, [](Diagnostic& d) { return d.severity == Severity::error && !follows_from_values(d.code); });
  graph_.nodes.erase(graph_.nodes.begin() + static_cast<std::ptrdiff_t>(nodes), graph_.nodes.end());
  graph_.updates.resize(updates);
  graph_.plans.resize(plans);
  custom_gradients_.resize(customs);
  known_gradients_.resize(known);
  graph_.loops.resize(loops);
  graph_.loop_contexts.resize(contexts);
  graph_.dims = std::move(before.dims);
  graph_.chosen_by = std::move(before.chosen_by);
  paths_ = paths;
  streams_ = streams;
  states_ = states;
  loop_ids_ = loop_ids;
  build_.origin = origin;
  return types;
}

std::string Elaborator::type_text(const Value& value) const {
  if (const NodeId* node = std::get_if<NodeId>(&value.data)) return show(build_.type(*node));
  const auto* tuple = std::get_if<Tuple>(&value.data);
  if (tuple == nullptr) return std::string(kNumber);
  std::string text = "(";
  for (const Value& item : tuple->items) text += (text.size() > 1 ? ", " : "") + type_text(item);
  return text + ")";
}

void Elaborator::hide(Name name, Span span, std::string reason) {
  frame().scope->hidden.insert_or_assign(name, HiddenName{span, std::move(reason)});
}

void Elaborator::take_branch(const ast::Block* taken, const ast::Block* left) {
  const bool fresh = left != nullptr && !checked_.contains(left);
  const auto types = check_branch(left);
  std::unordered_map<Name, Span> others;
  if (left != nullptr) add_bound_names(*left, others);
  Branch done = run_branch(taken);
  for (auto& [name, binding] : done.bindings) {
    if (binding.kind == BindingKind::value && frame().scope->find(name)) {
      frame().scope->assign(name, std::move(binding));
    } else if (!others.contains(name)) {
      hide(name, binding.span, "bound in one branch of an `if` only");
    } else if (const auto type = types.find(name); fresh && type != types.end() && binding.value && !type->second.empty() &&
                                                   !is_one_type(type->second, type_text(*binding.value))) {
      hide(name, binding.span, type_text(*binding.value) + " in one branch of an `if` and " + type->second + " in another");
    } else {
      frame().scope->assign(name, std::move(binding));
    }
  }
  for (const auto& [name, span] : others)
    if (!done.bindings.contains(name)) hide(name, span, "bound in one branch of an `if` only");
}

// Both branches; `then` is what a training step takes. A state updated in one keeps its value where the other is taken.
void Elaborator::merge_branches(const ast::Block* then, const ast::Block* otherwise, Span span) {
  const size_t first_update = graph_.updates.size();
  const auto take_updates = [&](const Branch& branch) {
    graph_.updates.resize(first_update);
    for (const Update& update : branch.updates)
      if (const auto entry = states_.find(update.target.index); entry != states_.end()) entry->second.update = {};
  };
  const size_t errors = diagnostics_.error_count();
  Branch a = run_branch(then);
  take_updates(a);
  Branch b = run_branch(otherwise);
  take_updates(b);
  build_.origin.location = locate(span);
  std::map<std::string, std::pair<Name, Span>> names;  // in an order of their own: nodes are made for them
  for (const Branch* branch : {&a, &b})
    for (const auto& [name, binding] : branch->bindings) names.try_emplace(name.str(), name, binding.span);
  for (const auto& [text, bound] : names) {
    const auto [name, where] = bound;
    const Binding* before = frame().scope->find(name);
    const auto of = [&](Branch& branch) -> const Binding* {
      const auto found = branch.bindings.find(name);
      const bool rebinds = found != branch.bindings.end() && (!before || found->second.kind == BindingKind::value);
      return rebinds ? &found->second : before;
    };
    const Binding *x = of(a), *y = of(b);
    if (x == nullptr || y == nullptr) {
      hide(name, where, "bound in one branch of an `if` only");
      continue;
    }
    if (x == before && y == before) continue;
    const uint32_t first_new = graph_.size();
    std::optional<Value> value;
    if (x->value && y->value && !before && !is_one_type(type_text(*x->value), type_text(*y->value))) {
      hide(name, where, type_text(*x->value) + " in one branch of an `if` and " + type_text(*y->value) + " in another");
      continue;
    }
    if (x->value && y->value) value = select(name, where, *x->value, *y->value);
    if (value) label_value(*value, name, first_new);
    frame().scope->assign(name, Binding{std::move(value), BindingKind::value, where});
  }
  if (diagnostics_.error_count() != errors) return;
  const auto value_of = [&](const Branch& branch, NodeId state) {
    const auto found = std::ranges::find(branch.updates, state, &Update::target);
    return found == branch.updates.end() ? state : found->value;
  };
  for (const Branch* branch : {&a, &b})
    for (const Update& update : branch->updates) {
      if (branch == &b && value_of(a, update.target) != update.target) continue;  // updated in both
      const NodeId value = build_.map(MapFn::where, {build_.training(), value_of(a, update.target), value_of(b, update.target)});
      graph_.updates.push_back(Update{update.target, value});
      states_.at(update.target.index).update = span;
    }
}

// where(training, a, b) of values with one type.
std::optional<Value> Elaborator::select(Name name, Span span, const Value& training, const Value& otherwise) {
  const auto* a = std::get_if<Tuple>(&training.data);
  const auto* b = std::get_if<Tuple>(&otherwise.data);
  if (a && b && a->items.size() == b->items.size()) {
    Tuple chosen;
    for (size_t i = 0; i < a->items.size(); ++i) {
      auto item = select(name, span, a->items[i], b->items[i]);
      if (!item) return std::nullopt;
      chosen.items.push_back(std::move(*item));
    }
    return Value{std::move(chosen)};
  }
  const auto *m = std::get_if<Number>(&training.data), *n = std::get_if<Number>(&otherwise.data);
  if (m && n && m->value == n->value && m->integer == n->integer) return training;
  const auto dtype_of = [&](const Value& value, const Value& beside) {
    if (const NodeId* node = std::get_if<NodeId>(&value.data)) return build_.type(*node).dtype;
    if (const NodeId* node = std::get_if<NodeId>(&beside.data)) return build_.type(*node).dtype;
    return m && n && m->integer && n->integer ? DType::i32 : DType::real;
  };
  std::optional<NodeId> x, y;
  if (!a && !b) {
    x = to_tensor(*this, training, dtype_of(training, otherwise), span);
    y = to_tensor(*this, otherwise, dtype_of(otherwise, training), span);
    if (!x || !y) return std::nullopt;
    if (*x == *y) return training;
    const Type &p = build_.type(*x), &q = build_.type(*y);
    const bool open = is_floating(p.dtype) && is_floating(q.dtype) && (p.dtype == DType::real || q.dtype == DType::real);
    if (p == q || (open && p.axes == q.axes)) return Value{build_.map(MapFn::where, {build_.training(), *x, *y})};
  }
  diagnostics_.report(Code::branch_types, span, name, type_text(training), type_text(otherwise))
      .hint("both branches of `if training` give a name one type: its axes in one order, and one dtype");
  return std::nullopt;
}

}  // namespace einc
