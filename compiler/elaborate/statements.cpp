// SPDX-License-Identifier: Apache-2.0
// Statements: bindings, loops, precision blocks, return.
#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/show.h"

namespace einc {
namespace {

Policy policy_of(ast::Policy policy) {
  switch (policy) {
    case ast::Policy::f64:
    case ast::Policy::f32:
      return Policy::f32;
    case ast::Policy::tf32:
      return Policy::tf32;
    case ast::Policy::bf16:
      return Policy::bf16;
    case ast::Policy::f16:
      return Policy::f16;
    case ast::Policy::fp8:
      return Policy::fp8;
  }
  return Policy::f32;
}

}  // namespace

void Elaborator::execute(const ast::Block& block) {
  ++depth_;
  for (const ast::Stmt& statement : block.statements) {
    if (exhausted_ || diagnostics_.full()) break;
    execute(statement);
  }
  --depth_;
}

void Elaborator::execute(const ast::Stmt& statement) {
  build_.origin.location = locate(statement.span);
  switch (statement.kind()) {
    case ast::StmtKind::dim:
    case ast::StmtKind::import:
    case ast::StmtKind::fn:
    case ast::StmtKind::mesh:
      return;  // taken in before the first statement
    case ast::StmtKind::shard:
      return;  // and these behind the last one
    case ast::StmtKind::tensor:
      return declare_tensor(*statement.as<ast::TensorDecl>(), statement.span);
    case ast::StmtKind::output:
      return declare_output(*statement.as<ast::Output>());
    case ast::StmtKind::assign:
      return assign(*statement.as<ast::Assign>());
    case ast::StmtKind::state_update:
      return update_state(*statement.as<ast::StateUpdate>(), statement.span);
    case ast::StmtKind::for_loop:
      return unroll(*statement.as<ast::For>(), statement.span);
    case ast::StmtKind::scan:
      return scan(*statement.as<ast::Scan>(), statement.span);
    case ast::StmtKind::collect:
      return collect(*statement.as<ast::Collect>(), statement.span);
    case ast::StmtKind::precision:
      return with_precision(*statement.as<ast::Precision>());
    case ast::StmtKind::minimize:
      return minimize(*statement.as<ast::Minimize>(), statement.span);
    case ast::StmtKind::return_value:
      return return_value(*statement.as<ast::Return>());
    case ast::StmtKind::expression:
      bare_call_ = statement.as<ast::ExprStmt>()->value.get();
      evaluate(*bare_call_);
      return;
    case ast::StmtKind::condition:
      return branch(*statement.as<ast::If>());
  }
}

// ---- bindings

void Elaborator::assign(const ast::Assign& statement) {
  const uint32_t first_new = graph_.size();
  const auto& annotation = statement.targets[0].type;  // several targets have none
  auto value = evaluate_whole(*statement.value, annotation ? &*annotation : nullptr);
  if (!value && finding_types_ && annotation)
    if (auto type = declared_type(*annotation)) value = Value{build_.input(Name(), std::move(*type))};
  if (statement.targets.size() == 1) return bind(statement.targets[0], std::move(value), first_new);
  const Tuple* tuple = value ? std::get_if<Tuple>(&value->data) : nullptr;
  if (value && (!tuple || tuple->items.size() != statement.targets.size())) {
    const std::string values = counted(tuple ? tuple->items.size() : 1, "value");
    auto report = diagnostics_.report(Code::target_count, statement.value->span, statement.targets.size(), values);
    const auto* call = statement.value->as<ast::Call>();
    const std::string callee = call != nullptr ? call->callee.name.str() : "";
    if (callee == "max" || callee == "min" || callee == "sort")
      report.hint("it gives the values alone; their places are arg{}(...)", callee);
    else if (callee == "top_k")
      report.hint("it gives the values alone; their places are top_k_index(...)");
    tuple = nullptr;
  }
  for (size_t i = 0; i < statement.targets.size(); ++i)
    bind(statement.targets[i], tuple ? std::optional(tuple->items[i]) : std::nullopt, first_new);
}

void Elaborator::bind(const ast::Target& target, std::optional<Value> value, uint32_t first_new_node) {
  const Name name = target.name.name;
  const SourceUnit& unit = *frame().unit;
  const Binding* existing = frame().scope->find(name);
  if (!existing) {
    Span declared;
    if (const auto dim = unit.dims.find(name); dim != unit.dims.end()) declared = dim->second;
    if (const auto fn = unit.fns.find(name); fn != unit.fns.end()) declared = fn->second.fn->name.span;
    if (declared.known()) {
      diagnostics_.report(Code::redefined, target.name.span, name, "a value")
          .label(declared, "declared here")
          .hint("give the value another name");
      return;
    }
  } else if (existing->kind == BindingKind::state) {
    diagnostics_.report(Code::state_rebound, target.name.span, name)
        .label(existing->span, "declared here")
        .hint("`{} <- ...` updates it", name);
    return;
  }
  if (value) label_value(*value, name, first_new_node);
  if (const NodeId* node = value && options_.bound && !checking_ ? std::get_if<NodeId>(&value->data) : nullptr)
    options_.bound(target.name.span, *node, show(build_.type(*node)));
  frame().scope->assign(name, Binding{std::move(value), BindingKind::value, target.name.span});
}

// The source's name for a value goes to the node that this statement made for it, behind renames.
void Elaborator::label_value(const Value& value, Name name, uint32_t first_new_node) {
  const NodeId* id = std::get_if<NodeId>(&value.data);
  if (!id) return;
  for (NodeId at = *id; at.index >= first_new_node;) {
    Node& node = graph_[at];
    if (node.origin.label.empty()) node.origin.label = name;
    if (node.op != Op::permute || !node.as<PermuteAttr>().order.is_identity()) return;
    at = node.operands[0];
  }
}

void Elaborator::return_value(const ast::Return& statement) {
  frame().returned = true;
  frame().result = evaluate(*statement.value);
  for (const ast::Argument& named : statement.named) named_gradients_.push_back({named.name, evaluate(*named.value), named.span});
}

// ---- `for i in n { ... }`

// The count as a number, and as a formula for the report; nullopt after an error.
std::optional<int64_t> Elaborator::trip_count(const ast::For& loop, Poly& symbolic) {
  const auto size = evaluate_size(*loop.count);
  if (!size) return checking_ ? std::optional<int64_t>(1) : std::nullopt;
  symbolic = *size;
  for (const Name name : size->free_names())
    if (!values_.contains(name)) {
      if (checking_) return 1;
      diagnostics_.report(Code::free_trip_count, loop.count->span, name).hint("set it: -D {}=12", name);
      return std::nullopt;
    }
  const auto count = size->evaluate_integer(values_);
  if (!count || *count < 0) {
    if (!diagnostics_.has_errors() || size->is_constant()) diagnostics_.report(Code::bad_trip_count, loop.count->span, show_size(*size));
    return std::nullopt;
  }
  const int64_t limit = options_.limits.iterations;
  iterations_ = std::min(iterations_, limit) + std::min(*count, limit);
  if (*count <= kMaxTripCount && iterations_ <= limit) return count;
  if (*count > kMaxTripCount)
    diagnostics_.report(Code::too_many_iterations, loop.count->span, *count, kMaxTripCount);
  else
    diagnostics_.report(Code::too_much_unrolling, loop.count->span, limit);
  exhausted_ = true;
  return std::nullopt;
}

void Elaborator::unroll(const ast::For& loop, Span) {
  Poly symbolic;
  const auto count = trip_count(loop, symbolic);
  if (!count) {  // nothing in the body can be trusted: what it would carry is unknown
    poison_targets(loop.body);
    return;
  }
  const uint32_t outer_context = build_.origin.loop_context;
  const uint32_t outer_loop = graph_.loop_contexts[outer_context].loop;
  const auto [place, fresh] = loop_ids_.try_emplace({&loop, outer_context == 0 ? UINT32_MAX : outer_loop, symbolic.str()}, 0);
  if (fresh) {
    place->second = static_cast<uint32_t>(graph_.loops.size());
    graph_.loops.push_back(Loop{symbolic, *count});
  }
  const uint32_t id = place->second;
  const size_t errors = diagnostics_.error_count();
  for (int64_t i = 0; i < *count && !exhausted_; ++i) {
    const uint32_t first_node = graph_.size();
    const size_t contexts = graph_.loop_contexts.size();
    graph_.loop_contexts.push_back(LoopContext{outer_context, id, i});
    build_.origin.loop_context = static_cast<uint32_t>(graph_.loop_contexts.size()) - 1;
    Scope iteration;
    iteration.parent = frame().scope;
    iteration.bindings.emplace(loop.variable.name, Binding{Value{Number{Poly(i), true}}, BindingKind::loop_index, loop.variable.span});
    frame().scope = &iteration;
    frame().loop_indices.push_back(i);
    execute(loop.body);
    frame().loop_indices.pop_back();
    frame().scope = iteration.parent;
    if (graph_.size() == first_node) graph_.loop_contexts.resize(contexts);  // nothing was made: no cost to count
    if (diagnostics_.error_count() != errors) break;                         // the next iteration would say it again
  }
  build_.origin.loop_context = outer_context;
}

void Elaborator::poison_targets(const ast::Block& body) {
  for (const ast::Stmt& statement : body.statements) {
    if (const auto* choice = statement.as<ast::If>()) {
      poison_targets(choice->then);
      if (choice->otherwise) poison_targets(*choice->otherwise);
    }
    if (const auto* assigned = statement.as<ast::Assign>())
      for (const ast::Target& target : assigned->targets)
        if (Binding* binding = frame().scope->find(target.name.name); binding && binding->kind != BindingKind::state)
          binding->value.reset();
  }
}

// ---- `precision bf16 { ... }`

void Elaborator::with_precision(const ast::Precision& precision) {
  if (precision.policy == ast::Policy::f64) {
    diagnostics_.report(Code::no_f64_policy, precision.policy_span).hint("declare the tensors f64");
    return;
  }
  if (!precision.body) return;  // the whole file's: taken in before the first statement
  const Policy saved = build_.origin.policy;
  build_.origin.policy = policy_of(precision.policy);
  execute(*precision.body);
  build_.origin.policy = saved;
}

// `precision bf16` without a block: once, for the file.
void Elaborator::read_file_policy(const SourceUnit& unit) {
  Span first;
  for (const ast::Stmt& statement : unit.program.statements) {
    const auto* precision = statement.as<ast::Precision>();
    if (!precision || precision->body) continue;
    if (first.known()) diagnostics_.report(Code::redefined, statement.span, "precision", "the file's policy").label(first, "first here");
    first = statement.span;
    graph_.policy = policy_of(precision->policy);
  }
  if (options_.precision) graph_.policy = *options_.precision;
}

}  // namespace einc
