// SPDX-License-Identifier: Apache-2.0
// Dims and sizes. A size is a formula in base dims: derived dims are substituted where they are declared. `/` is exact; what
// the formulas alone do not decide becomes a condition on the values in use.
#include <algorithm>

#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/show.h"
#include "compiler/elaborate/suggest.h"
#include "compiler/symbolic/order.h"

namespace einc {
namespace {

std::string_view describe(const ast::Expr& expr) {
  switch (expr.kind()) {
    case ast::ExprKind::invalid:
      return "this";
    case ast::ExprKind::number:
      return "a number with a fraction";
    case ast::ExprKind::boolean:
      return "a truth value";
    case ast::ExprKind::name:
      return "a tensor";
    case ast::ExprKind::string:
      return "a string";
    case ast::ExprKind::tuple:
      return "a tuple";
    case ast::ExprKind::unary:
    case ast::ExprKind::binary:
      return "this operator";
    case ast::ExprKind::call:
      return "a call";
    case ast::ExprKind::index:
      return "an index";
    case ast::ExprKind::annotated:
      return "an annotation";
  }
  return "this";
}

}  // namespace

int Elaborator::tag(Span span) {
  tags_.push_back(span);
  return static_cast<int>(tags_.size()) - 1;
}

std::string Elaborator::show_size(const Poly& size) const { return einc::show(graph_, size); }

// ---- dims

void Elaborator::declare_dims(SourceUnit& unit) {
  for (const ast::Stmt& statement : unit.program.statements)
    if (const auto* declaration = statement.as<ast::DimDecl>())
      for (const ast::DimItem& item : declaration->items) declare_dim(unit, item);
}

void Elaborator::declare_dim(SourceUnit& unit, const ast::DimItem& item) {
  const Name name = item.name.name;
  if (const auto first = unit.dims.find(name); first != unit.dims.end()) {
    diagnostics_.report(Code::redefined, item.name.span, name, "a dim").label(first->second, "first here");
    return;
  }
  std::optional<Poly> value;
  if (item.kind != ast::DimKind::free) {
    value = dim_value(unit, item);
    if (!value) unit.incomplete = true;
  }
  unit.dims.emplace(name, item.name.span);
  if (const Dim* existing = graph_.dims.find(name)) {  // another file's: one dim of that name for the whole program
    if (existing->kind == DimKind::free && value && item.kind == ast::DimKind::defaulted) {
      graph_.dims.set_default(name, *value->as_integer());
      return;
    }
    const bool same = item.kind == ast::DimKind::free || !value || graph_.dims.size(name) == *value ||
                      (existing->kind == DimKind::defaulted && *value == Poly(existing->default_value));
    if (!same)
      diagnostics_.report(Code::dim_conflict, item.name.span, name)
          .label(tags_[static_cast<size_t>(existing->source)], "here it has another value")
          .hint("declare it without a value in one of the files");
    return;
  }
  if (!value) {
    graph_.dims.declare_free(name, tag(item.name.span));
  } else if (item.kind == ast::DimKind::defaulted) {
    graph_.dims.declare_default(name, *value->as_integer(), tag(item.name.span));
  } else {
    graph_.dims.declare_derived(name, *value, tag(item.name.span));
  }
}

// The value of `dim name = value`: a default is a number from 1 to 2^63 - 1.
std::optional<Poly> Elaborator::dim_value(const SourceUnit& unit, const ast::DimItem& item) {
  Frame top;
  top.unit = &unit;
  Frame* const saved = frame_;
  frame_ = &top;
  auto value = evaluate_size(*item.value);
  frame_ = saved;
  if (!value) return std::nullopt;
  const auto constant = value->as_rational();
  if (constant && (!value->as_integer() || *value->as_integer() < 1)) {
    diagnostics_.report(Code::dim_value, item.value->span, item.name.name, constant->str())
        .hint("a dim is an integer from 1 to 9223372036854775807");
    return std::nullopt;
  }
  return value;
}

void Elaborator::bind_dims() {
  const BindResult bound = graph_.dims.bind(options_.dims);
  report_bind_problems(bound);
  values_ = bound.values;
  order_values_ = graph_.dims.values_or(options_.dims, 1024);
}

void Elaborator::report_bind_problems(const BindResult& bound) {
  for (const BindProblem& problem : bound.problems) {
    const Span where = problem.source >= 0 ? tags_[static_cast<size_t>(problem.source)] : Span{};
    switch (problem.kind) {
      case BindProblemKind::unknown_dim: {
        if (units_.all()[0]->incomplete) break;  // its declaration may be what the parser could not read
        auto report = diagnostics_.report(Code::unknown_dim_setting, where, problem.dim);
        std::vector<std::string> names;
        for (const Dim& dim : graph_.dims.dims()) names.push_back(dim.name.str());
        if (const auto near = near_name(problem.dim.str(), names)) report.hint("did you mean `{}`?", *near);
        break;
      }
      case BindProblemKind::derived_set:
        diagnostics_.report(Code::derived_dim_set, where, problem.message);
        break;
      case BindProblemKind::below_one:
      case BindProblemKind::too_large:
        diagnostics_.report(Code::dim_out_of_range, where, problem.message);
        break;
      case BindProblemKind::not_integer:
        diagnostics_.report(Code::dim_out_of_range, where, problem.message)
            .hint("choose sizes that divide, here or by -D; `//` takes the floor");
        break;
      case BindProblemKind::condition:
        report_condition(problem);
        break;
    }
  }
}

// Inside a fn, the calls that led there are shown; inside the bundled library the user's own call is what is wrong.
void Elaborator::report_condition(const BindProblem& problem) {
  constexpr size_t kShownCalls = 3;
  const auto is_bundled = [&](Span span) { return sources_.file(span.file).name().starts_with('<'); };
  const Span inside = problem.source >= 0 ? tags_[static_cast<size_t>(problem.source)] : Span{};
  const auto found = tag_calls_.find(problem.source);
  std::vector<Span> calls = found == tag_calls_.end() ? std::vector<Span>() : found->second;
  Span where = inside;
  while (where.known() && is_bundled(where) && !calls.empty()) {
    where = calls.front();
    calls.erase(calls.begin());
  }
  // One call of a bundled fn, one mistake: the rows of an image that are too few, and its columns.
  const auto same = [&](const Diagnostic& d) { return d.code == Code::condition_fails && d.span == where; };
  if (!(where == inside) && std::ranges::any_of(diagnostics_.list(), same)) return;
  auto report = diagnostics_.report(Code::condition_fails, where, problem.message);
  if (!(where == inside)) report.label(inside, "inside the bundled fn");
  if (problem.message.starts_with("window"))
    report.hint("pad the input, or take a smaller kernel or dilation");
  else if (problem.message.starts_with("an index"))
    report.hint("indices count from 0, and from the end as -1, -2, ...");
  for (size_t i = 0; i < std::min(calls.size(), kShownCalls); ++i) report.label(calls[i], "in this call");
}

// ---- names of sizes

std::optional<Poly> Elaborator::declared_size(Name name) const {
  if (const SignatureAxis* axis = frame().find_axis(name))
    if (!axis->parameter || frame().is_axis_parameter(name)) return axis->caller.size;
  if (frame().unit->dims.contains(name) && graph_.dims.find(name)) return graph_.dims.size(name);
  return std::nullopt;
}

std::optional<Poly> Elaborator::visible_size(Name name) const {
  if (auto size = declared_size(name)) return size;
  const LocalAxis* axis = frame().scope->find_axis(name);
  if (axis && !axis->other) return axis->size;
  return std::nullopt;
}

void Elaborator::introduce_local(Name name, const Poly& size, Span where) { frame().scope->introduce(name, size, where); }

// A name where a size is wanted: a number by that name (an argument, a loop's index), a dim, or an axis.
std::optional<Poly> Elaborator::size_of_name(Name name, Span span) {
  if (auto size = visible_size(name)) return size;
  if (!report_two_sizes(name, span)) report_unknown_name(name, span);
  return std::nullopt;
}

bool Elaborator::report_two_sizes(Name name, Span where) {
  const LocalAxis* axis = frame().scope->find_axis(name);
  if (!axis || !axis->other) return false;
  diagnostics_.report(Code::ambiguous_axis_size, where, name, show_size(axis->size), show_size(*axis->other))
      .label(axis->span, "{} here", show_size(axis->size))
      .label(axis->other_span, "{} here", show_size(*axis->other))
      .hint("give the two axes different names");
  return true;
}

std::vector<std::string> Elaborator::visible_axis_names() const {
  std::vector<std::string> names;
  for (const SignatureAxis& axis : frame().signature) names.push_back(axis.name.str());
  for (const Dim& dim : graph_.dims.dims())
    if (frame().unit->dims.contains(dim.name)) names.push_back(dim.name.str());
  for (const Scope* scope = frame().scope; scope; scope = scope->parent)
    for (const auto& entry : scope->axes) names.push_back(entry.first.str());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> Elaborator::visible_value_names() const {
  std::vector<std::string> names = visible_axis_names();
  for (const Scope* scope = frame().scope; scope; scope = scope->parent)
    for (const auto& entry : scope->bindings) names.push_back(entry.first.str());
  std::sort(names.begin(), names.end());
  return names;
}

std::string Elaborator::describe_size(const Poly& size) const {
  std::string text = show_size(size);
  if (size.is_constant()) return text;
  if (const auto value = size.evaluate_integer(values_)) text += " = " + std::to_string(*value);
  for (const Dim& dim : graph_.dims.dims()) {
    if (!(graph_.dims.size(dim.name) == size)) continue;
    const Span where = tags_[static_cast<size_t>(dim.source)];
    return text + " (declared at " + sources_.file(where.file).name() + ":" + std::to_string(sources_.begin_of(where).line) + ")";
  }
  return text;
}

// ---- size expressions

std::optional<Poly> Elaborator::evaluate_size(const ast::Expr& expr) {
  if (const auto* number = expr.as<ast::Number>(); number && number->kind == ast::NumberKind::integer) {
    if (const auto value = ast::as_int64(*number)) return Poly(*value);
    diagnostics_.report(Code::integer_too_large, expr.span, number->text);
    return std::nullopt;
  }
  if (const auto* ref = expr.as<ast::NameRef>()) {
    const Binding* binding = frame().scope->find(ref->name);
    if (!binding) return size_of_name(ref->name, expr.span);
    if (!binding->value) return std::nullopt;
    if (const auto* number = std::get_if<Number>(&binding->value->data);
        number && number->integer && std::holds_alternative<Poly>(number->value))
      return std::get<Poly>(number->value);
    if (auto size = visible_size(ref->name)) return size;
    diagnostics_.report(Code::not_a_size, expr.span, ref->name).label(binding->span, "bound here");
    return std::nullopt;
  }
  if (const auto* unary = expr.as<ast::Unary>(); unary && unary->op == ast::UnaryOp::negate) {
    const auto size = evaluate_size(*unary->operand);
    return size ? std::optional(-*size) : std::nullopt;
  }
  if (const auto* binary = expr.as<ast::Binary>(); binary && binary->op <= ast::BinaryOp::remainder) return combine_sizes(expr, *binary);
  if (expr.kind() == ast::ExprKind::invalid) return std::nullopt;
  auto report = diagnostics_.report(Code::not_a_dim_expression, expr.span, describe(expr));
  const auto* call = expr.as<ast::Call>();
  if (call != nullptr && call->callee.name == Name("len"))
    report.hint("the name of an axis is its size: for i in layers { ... }");
  else
    report.hint("a size is made of whole numbers, dims and names of axes by + - * / // % and parentheses");
  return std::nullopt;
}

std::optional<Poly> Elaborator::combine_sizes(const ast::Expr& expr, const ast::Binary& binary) {
  const auto left = evaluate_size(*binary.left);
  const auto right = evaluate_size(*binary.right);
  if (!left || !right) return std::nullopt;
  std::optional<Poly> size;
  if (binary.op == ast::BinaryOp::add) size = *left + *right;
  if (binary.op == ast::BinaryOp::sub) size = *left - *right;
  if (binary.op == ast::BinaryOp::mul) size = *left * *right;
  if (binary.op == ast::BinaryOp::div) size = quotient(expr, binary, *left, *right);
  if (binary.op == ast::BinaryOp::floor_div || binary.op == ast::BinaryOp::remainder) size = floored(binary, *left, *right);
  if (!size || size->is_small()) return size;
  diagnostics_.report(Code::size_too_complex, expr.span, "64 terms of degree 63").hint("give a part of it a dim of its own: dim part = 8");
  return std::nullopt;
}

std::optional<Poly> Elaborator::quotient(const ast::Expr& expr, const ast::Binary& binary, const Poly& left, const Poly& right) {
  if (right.is_zero()) {
    diagnostics_.report(Code::division_by_zero, binary.right->span);
    return std::nullopt;
  }
  Poly quotient = divide(left, right);
  if (quotient.is_integral()) return quotient;
  if (quotient.is_constant()) {
    diagnostics_.report(Code::inexact_division, expr.span, show_size(left), show_size(right));
    return std::nullopt;
  }
  require(Condition{ConditionKind::divides, left, right, -1, "a dim expression"}, expr.span);
  return quotient;
}

// floor(a / b) and a - b floor(a / b); b may be any number but 0.
std::optional<Poly> Elaborator::floored(const ast::Binary& binary, const Poly& left, const Poly& right) {
  if (right.is_zero()) {
    diagnostics_.report(Code::division_by_zero, binary.right->span);
    return std::nullopt;
  }
  const Poly quotient = floor_divide(left, right);
  return binary.op == ast::BinaryOp::floor_div ? quotient : left - right * quotient;
}

std::optional<Poly> Elaborator::axis_size(const ast::Expr& expr) {
  auto size = evaluate_size(expr);
  if (!size || !check_at_least_one(*size, expr.span)) return std::nullopt;
  return size;
}

bool Elaborator::check_at_least_one(const Poly& size, Span span) {
  if (provably_at_least(size, Poly(1))) return true;
  if (size.is_constant()) {
    diagnostics_.report(Code::size_below_one, span, size.str());
    return false;
  }
  require(Condition{ConditionKind::at_least, size, Poly(1), -1, "the size of an axis"}, span);
  return true;
}

void Elaborator::require(Condition condition, Span where) {
  switch (decide(condition)) {
    case Verdict::always:
      return;
    case Verdict::never:
      diagnostics_.report(Code::condition_never, where, to_string(condition), condition.text);
      return;
    case Verdict::depends:
      break;
  }
  condition.source = tag(where);
  std::vector<Span> calls;
  for (const Frame* at = frame_; at && at->fn; at = at->caller) calls.push_back(at->call);
  if (!calls.empty()) tag_calls_.emplace(condition.source, std::move(calls));
  graph_.dims.require(std::move(condition));
}

}  // namespace einc
