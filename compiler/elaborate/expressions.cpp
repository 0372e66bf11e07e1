// SPDX-License-Identifier: Apache-2.0
// Expressions: literals, names, operators, calls and indexing.
#include <algorithm>
#include <array>
#include <iterator>

#include "compiler/elaborate/builtins.h"
#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/suggest.h"
#include "dsl/foreign_functions.h"
#include "dsl/habits.h"
#include "runtime/base/ascii.h"

namespace einc {
namespace {

// `batchnorm`, `LayerNorm` and the like: a layer of the bundled library but for its underscores and capitals.
std::optional<std::string> bundled_layer_like(std::string_view written) {
  const auto letters = [](std::string_view name) {
    std::string kept;
    for (const char c : name)
      if (c != '_') kept += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return kept;
  };
  const std::string_view library = bundled_library("nn").value_or("");
  constexpr std::string_view kStart = "\nfn ";
  for (size_t at = library.find(kStart); at != std::string_view::npos; at = library.find(kStart, at + 1)) {
    const std::string_view name = library.substr(at + kStart.size(), library.find('(', at) - at - kStart.size());
    if (letters(name) == letters(written)) return std::string(name);
  }
  return std::nullopt;
}

MapFn map_fn(ast::BinaryOp op) {
  switch (op) {
    case ast::BinaryOp::add:
      return MapFn::add;
    case ast::BinaryOp::sub:
      return MapFn::sub;
    case ast::BinaryOp::mul:
      return MapFn::mul;
    case ast::BinaryOp::div:
      return MapFn::div;
    case ast::BinaryOp::floor_div:
      return MapFn::floor_div;
    case ast::BinaryOp::remainder:
      return MapFn::remainder;
    case ast::BinaryOp::pow:
      return MapFn::pow;
    case ast::BinaryOp::lt:
      return MapFn::less;
    case ast::BinaryOp::le:
      return MapFn::less_equal;
    case ast::BinaryOp::gt:
      return MapFn::greater;
    case ast::BinaryOp::ge:
      return MapFn::greater_equal;
    case ast::BinaryOp::eq:
      return MapFn::equal;
    case ast::BinaryOp::ne:
      return MapFn::not_equal;
    case ast::BinaryOp::logical_and:
      return MapFn::logical_and;
    case ast::BinaryOp::logical_or:
      return MapFn::logical_or;
  }
  return MapFn::add;
}

MapFn map_fn(ast::UnaryOp op) {
  switch (op) {
    case ast::UnaryOp::negate:
      return MapFn::neg;
    case ast::UnaryOp::logical_not:
      return MapFn::logical_not;
  }
  return MapFn::neg;
}

size_t count_items(const Value& value) {
  const auto* tuple = std::get_if<Tuple>(&value.data);
  size_t count = 1;
  if (tuple)
    for (const Value& item : tuple->items) count += count_items(item);
  return count;
}

// What a file binds outside its fns and loops, where it does so first.
std::unordered_map<Name, Span> names_at_top_level(const ast::Program& program) {
  std::unordered_map<Name, Span> names;
  const auto add = [&](const ast::Identifier& bound) { names.emplace(bound.name, bound.span); };
  for (const ast::Stmt& statement : program.statements) {
    if (const auto* dims = statement.as<ast::DimDecl>())
      for (const ast::DimItem& item : dims->items) add(item.name);
    if (const auto* declaration = statement.as<ast::TensorDecl>()) add(declaration->name);
    if (const auto* output = statement.as<ast::Output>(); output && output->value) add(output->name);
    if (const auto* assigned = statement.as<ast::Assign>())
      for (const ast::Target& target : assigned->targets) add(target.name);
  }
  return names;
}

// A cheap look at text that was not parsed: names before `=`, `:` or `,`, or after a word that declares.
std::unordered_set<std::string_view> defined_looking_names(std::string_view text) {
  static constexpr std::string_view kDeclaring[] = {"dim", "input", "param",    "state", "output", "fn", "for",
                                                    "def", "class", "function", "func",  "const",  "int"};
  std::unordered_set<std::string_view> names;
  std::string_view before;  // the word before, with blanks only between
  for (size_t at = 0; at < text.size();) {
    if (!is_name_char(text[at])) {
      if (text[at] != ' ') before = {};
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < text.size() && is_name_char(text[at])) ++at;
    const std::string_view word = text.substr(begin, at - begin);
    const size_t next = std::min(text.find_first_not_of(' ', at), text.size());
    const bool declared = std::find(std::begin(kDeclaring), std::end(kDeclaring), before) != std::end(kDeclaring);
    if (declared || (next < text.size() && (text[next] == '=' || text[next] == ':' || text[next] == ','))) names.insert(word);
    before = word;
  }
  return names;
}

// `n // a comment`
bool behind_slashes(std::string_view text, size_t at) {
  const size_t last = at == 0 ? std::string_view::npos : text.find_last_not_of(" \t", at - 1);
  return last != std::string_view::npos && last > 0 && text.substr(last - 1, 2) == "//";
}

}  // namespace

bool Elaborator::within_limits(Span span) {
  if (exhausted_) return false;
  if (depth_ > kMaxEvaluationDepth)
    diagnostics_.report(Code::too_deep, span, kMaxEvaluationDepth);
  else if (graph_.size() > options_.limits.graph_nodes)
    diagnostics_.report(Code::too_many_nodes, span, options_.limits.graph_nodes).hint("shorten a loop, or call fewer fns inside fns");
  else
    return true;
  exhausted_ = true;
  return false;
}

std::optional<Value> Elaborator::evaluate_within_limits(const ast::Expr& expr) {
  ++depth_;
  std::optional<Value> value;
  if (within_limits(expr.span)) value = evaluate_kind(expr);
  --depth_;
  return value;
}

std::optional<Value> Elaborator::evaluate_kind(const ast::Expr& expr) {
  switch (expr.kind()) {
    case ast::ExprKind::invalid:
      return std::nullopt;
    case ast::ExprKind::number:
      return evaluate_number(*expr.as<ast::Number>(), expr.span);
    case ast::ExprKind::boolean:
      return Value{build_.constant(Poly(expr.as<ast::Boolean>()->value ? 1 : 0), DType::boolean)};
    case ast::ExprKind::name:
      return evaluate_name(expr.as<ast::NameRef>()->name, expr.span);
    case ast::ExprKind::string:
      diagnostics_.report(Code::string_as_value, expr.span);
      return std::nullopt;
    case ast::ExprKind::tuple:
      return evaluate_tuple(*expr.as<ast::Tuple>(), expr.span);
    case ast::ExprKind::unary:
    case ast::ExprKind::binary:
      return evaluate_operator(expr);
    case ast::ExprKind::call:
      return evaluate_call(expr);
    case ast::ExprKind::index:
      return evaluate_index(expr);
    case ast::ExprKind::annotated:
      return evaluate_whole(*expr.as<ast::Annotated>()->value, &expr.as<ast::Annotated>()->type);
  }
  return std::nullopt;
}

std::optional<Value> Elaborator::evaluate_tuple(const ast::Tuple& written, Span span) {
  Tuple tuple;
  bool whole = true;
  size_t count = 0;
  for (const ast::ExprPtr& item : written.items) {
    auto value = evaluate(*item);
    whole = whole && value;
    if (!value) continue;
    count += count_items(*value);
    tuple.items.push_back(std::move(*value));
  }
  if (!whole) return std::nullopt;
  if (count <= kMaxTupleItems) return Value{std::move(tuple)};
  diagnostics_.report(Code::tuple_too_large, span, kMaxTupleItems);
  exhausted_ = true;
  return std::nullopt;
}

std::optional<Value> Elaborator::evaluate_number(const ast::Number& number, Span span) {
  if (number.kind == ast::NumberKind::real) return Value{Number{number.value, false}};
  if (const auto value = ast::as_int64(number)) return Value{Number{Poly(*value), true}};
  diagnostics_.report(Code::integer_too_large, span, number.text);
  return std::nullopt;
}

std::optional<Value> Elaborator::evaluate_name(Name name, Span span) {
  if (const Binding* binding = frame().scope->find(name)) return binding->value;
  if (name == Name("training") && !visible_size(name)) return Value{build_.training()};
  if (const auto size = size_of_name(name, span)) return Value{Number{*size, true}};
  return std::nullopt;
}

// Where the top level binds the name by a later statement.
Span Elaborator::bound_later(Name name) const {
  if (frame().fn) return {};
  const SourceUnit& unit = *frame().unit;
  auto found = top_level_names_.find(&unit);
  if (found == top_level_names_.end()) found = top_level_names_.emplace(&unit, names_at_top_level(unit.program)).first;
  const auto place = found->second.find(name);
  return place == found->second.end() ? Span{} : place->second;
}

// True when the file was not understood whole and its text looks as if it defines the name somewhere: no further message.
bool Elaborator::may_be_defined(Name name) const {
  const SourceUnit& unit = *frame().unit;
  if (!unit.incomplete) return false;
  auto found = defined_looking_.find(&unit);
  if (found == defined_looking_.end())
    found = defined_looking_.emplace(&unit, defined_looking_names(sources_.file(unit.file).text())).first;
  return found->second.contains(name.str());
}

void Elaborator::report_unknown_name(Name name, Span span) {
  const Span later = bound_later(name);
  if (!later.known() && may_be_defined(name)) return;
  auto report = diagnostics_.report(Code::unknown_name, span, name);
  for (const Scope* scope = frame().scope; scope; scope = scope->parent)
    if (const auto hidden = scope->hidden.find(name); hidden != scope->hidden.end()) {
      report.label(hidden->second.span, "{}", hidden->second.reason).hint("bind it before the `if`, or in every branch with one type");
      return;
    }
  if (collecting_ != nullptr)
    for (const auto& [collected, node] : collecting_->values)
      if (collected.name == name) {
        report.label(collected.span, "collected here")
            .hint("`{}` is there behind the scan; what the next iteration needs is carried", name);
        return;
      }
  if (const WordHabit* habit = find_habit(name.str())) {
    report.hint("{}", habit->hint);
    if (!habit->replacement.empty()) report.replace(span, habit->replacement);
    return;
  }
  if (behind_slashes(sources_.file(span.file).text(), span.begin)) {
    report.hint("comments begin with `#`");
    return;
  }
  if (frame().unit->fns.contains(name) || frame().unit->imported.contains(name)) {
    report.hint("`{}` is a fn: call it, {}(...)", name, name);
    return;
  }
  if (find_builtin(name.str())) {
    report.hint("`{}` is a built-in function: call it, {}(...)", name, name);
    return;
  }
  if (later.known() && later.begin < span.begin) {  // a dim is made before any tensor
    report.label(later, "`{}` is a value, which comes after all dims", name)
        .hint("a dim is made of integers and other dims; a size of an input's axis is the axis' name");
    return;
  }
  if (later.known()) {
    report.label(later, "`{}` is bound here, further down", name);
    return;
  }
  for (const Frame* outer = frame().caller; outer; outer = outer->caller)
    if (const Binding* outside = outer->scope->find(name)) {
      report.label(outside->span, "`{}` outside the fn", name);
      report.hint("a fn sees no outside values: pass `{}` as an argument", name);
      return;
    }
  if (const auto near = near_name(name.str(), visible_value_names())) report.did_you_mean(span, *near);
}

std::optional<Value> Elaborator::evaluate_operator(const ast::Expr& expr) {
  std::vector<Value> operands;
  std::vector<Span> spans;
  bool whole = true;
  const auto take = [&](const ast::Expr& operand) {
    auto value = evaluate_operand(operand);
    whole = whole && value;
    if (value) operands.push_back(std::move(*value));
    spans.push_back(operand.span);
  };
  MapFn fn;
  if (const auto* unary = expr.as<ast::Unary>()) {
    fn = map_fn(unary->op);
    take(*unary->operand);
  } else {
    const auto& binary = *expr.as<ast::Binary>();
    fn = map_fn(binary.op);
    take(*binary.left);
    take(*binary.right);
  }
  if (!whole) return finding_types_ && operands.size() == 1 && spans.size() == 2 ? std::optional(operands[0]) : std::nullopt;
  const SourceLocation saved = build_.origin.location;
  build_.origin.location = locate(expr.span);
  auto value = elementwise_operator(*this, fn, operands, spans, expr.span);
  build_.origin.location = saved;
  return value;
}

std::optional<Value> Elaborator::evaluate_call(const ast::Expr& expr) {
  const auto& call = *expr.as<ast::Call>();
  if (const auto fn = find_fn(call.callee.name, call.callee.span)) {
    if (!fn->fn) return std::nullopt;
    const bool is_statement = bare_call_ == &expr;
    auto value = call_fn(*fn, call, expr.span);
    const auto* tuple = value ? std::get_if<Tuple>(&value->data) : nullptr;
    if (tuple && tuple->items.empty() && !is_statement && !report_no_return(*fn, call)) return std::nullopt;
    return value;
  }
  const SourceLocation saved = build_.origin.location;
  build_.origin.location = locate(expr.span);
  std::optional<Value> value;
  if (call.callee.name == Name("grad")) {
    value = gradient(call, expr.span);
  } else if (call.callee.name == Name("vjp") || call.callee.name == Name("jvp")) {
    value = product_with_derivative(call, expr.span);
  } else if (call.callee.name == Name("rename")) {
    value = renamed(call, expr.span);
  } else if (call.callee.name == Name("updated")) {
    value = updated_state(call, expr.span);
  } else if (const auto builtin = find_builtin(call.callee.name.str())) {
    value = (*builtin)(*this, call);
    if (!value && finding_types_) value = typical_operand(call);
  } else if (!frame().unit->import_failed && !may_be_defined(call.callee.name)) {
    auto report = diagnostics_.report(Code::unknown_function, call.callee.span, call.callee.name);
    const auto nn = bundled_library("nn");
    const Binding* bound = frame().scope->find(call.callee.name);
    const auto* tensor = bound && bound->value ? std::get_if<NodeId>(&bound->value->data) : nullptr;
    if (tensor != nullptr && !build_.type(*tensor).axes.empty() && build_.type(*tensor).axis(0).is_named())
      report.label(bound->span, "a value, {}", show(build_.type(*tensor)))
          .hint("a value is not a function: `{}[{} = ...]` picks by index, `*` multiplies", call.callee.name,
                without_marks(build_.type(*tensor).axis(0).name));
    else if (nn && nn->find(fmt::format("fn {}(", call.callee.name.str())) != std::string_view::npos)
      report.hint("`{}` is in the bundled library: `import nn`", call.callee.name).replace({frame().unit->file, 0, 0}, "import nn\n");
    else if (call.callee.name == Name("float") && call.arguments.size() == 1 && call.arguments[0].value->as<ast::String>())
      report.hint("`inf`, `-inf` and `nan` are numbers, written without quotes");
    else if (const std::string foreign = foreign_function_hint(call.callee.name.str()); !foreign.empty())
      report.hint("{}", foreign);
    else if (const auto near = near_name(call.callee.name.str(), callable_names()))
      report.did_you_mean(call.callee.span, *near);
    else if (const auto layer = bundled_layer_like(call.callee.name.str()))
      report.hint("did you mean `{}` of the bundled library? `import nn`", *layer);
  }
  build_.origin.location = saved;
  return value;
}

// A value is wanted of a fn that returns none. False: it was said, or the fn's file was not read whole.
bool Elaborator::report_no_return(const FnRef& ref, const ast::Call& call) {
  const std::vector<ast::Stmt>& body = ref.fn->body.statements;
  if (!body.empty() && body.back().as<ast::Return>()) return true;  // of an empty tuple
  if (ref.unit->incomplete) return false;
  auto report = diagnostics_.report(Code::no_return, call.callee.span, ref.fn->name.name);
  report.label(ref.fn->name.span, "the fn");
  const auto* last = body.empty() ? nullptr : body.back().as<ast::Assign>();
  if (!last) {
    report.hint("end its body with `return` and a value");
    return false;
  }
  const Name name = last->targets[0].name.name;
  report.hint("end its body with `return {}`", name)
      .replace({ref.unit->file, body.back().span.end, body.back().span.end}, "; return " + name.str());
  return false;
}

std::vector<std::string> Elaborator::callable_names() const {
  std::vector<std::string> names = builtin_names();
  names.insert(names.end(), {"grad", "jvp", "rename", "updated", "vjp"});
  for (const auto& entry : frame().unit->fns) names.push_back(entry.first.str());
  for (const auto& entry : frame().unit->imported) names.push_back(entry.first.str());
  if (schedules_)
    for (const auto& entry : schedules_->fns) names.push_back(entry.first.str());
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<Value> Elaborator::evaluate_index(const ast::Expr& expr) {
  const auto& index = *expr.as<ast::Index>();
  const auto base = evaluate_tensor(*index.base);
  if (!base) return std::nullopt;
  const SourceLocation saved = build_.origin.location;
  build_.origin.location = locate(expr.span);
  auto value = index_tensor(*this, *base, index);
  build_.origin.location = saved;
  return value;
}

std::optional<NodeId> Elaborator::evaluate_tensor(const ast::Expr& expr) {
  const auto value = evaluate(expr);
  if (!value) return std::nullopt;
  if (!std::holds_alternative<Tuple>(value->data)) return to_tensor_alone(*this, *value, expr.span);
  report_several(expr.span, std::get<Tuple>(value->data).items.size());
  return std::nullopt;
}

// Several values where one is needed: what to write stands where they are bound.
void Elaborator::report_several(Span span, size_t count) {
  auto report = diagnostics_.report(Code::several_values, span, count);
  if (count < 2) return;
  const Name name(sources_.text(span));
  const Binding* binding = frame().scope->find(name);
  std::string names = binding ? name.str() : "first";
  for (size_t i = 1; i < count && i < 4; ++i) names += fmt::format(", {}", std::array{"second", "third", "fourth"}[i - 1]);
  if (count > 4) names += ", ...";
  if (binding) report.label(binding->span, "bound here");
  report.hint("each has a name: {} = ...", names);
}

SourceLocation Elaborator::locate(Span span) const {
  if (!span.known()) return {};
  const uint64_t key = uint64_t{span.begin} << 40 | uint64_t{span.size() & 0xFFFFFF} << 16 | static_cast<uint16_t>(span.file);
  auto [place, fresh] = locations_.try_emplace(key);
  if (fresh) {
    const SourceFile& file = sources_.file(span.file);
    const Location begin = file.locate(span.begin);
    const Location end = file.locate(span.end);
    place->second = {span, {Name(file.name()), begin.line, begin.column, end.line == begin.line ? end.column : begin.column + 1}};
  }
  return place->second.location;
}

Name Elaborator::random_stream(Span) {
  const std::string& path = frame().path;
  return path + "#" + std::to_string(streams_[path]++);
}

}  // namespace einc
