// SPDX-License-Identifier: Apache-2.0
// Bindings come from the syntax tree, words from the tokens: a tree with holes still knows most bindings, and tokens are always there.
#include "compiler/lsp/symbols.h"

#include <algorithm>

#include "dsl/token.h"
#include "runtime/base/ascii.h"

namespace einc {

std::string_view to_string(SymbolKind kind) {
  static constexpr std::string_view kNames[] = {"dim", "input", "param", "state", "fn", "parameter", "axis", "value", "loop variable"};
  return kNames[static_cast<size_t>(kind)];
}

Symbols::Symbols(const SourceMap& sources, const ast::Program& program) {
  gather(program.statements, 0);
  read_words(sources, program.file);
}

void Symbols::bind(const ast::Identifier& name, SymbolKind kind, Span statement, size_t scope) {
  if (name.name.empty() || find(name.name.str(), scope)) return;
  definitions_.push_back({name.name.str(), kind, name.span, statement, scope});
}

// Of a signature or an annotation: names that are no dims belong to the fn.
void Symbols::bind_axes(const ast::Type& type, Span statement, size_t scope) {
  for (const ast::Axis& axis : type.axes)
    if (axis.kind == ast::AxisKind::sized || (axis.kind == ast::AxisKind::named && scope != 0 && !find(axis.name.name.str(), 0)))
      bind(axis.name, SymbolKind::axis, statement, scope);
}

void Symbols::bind_fn(const ast::Fn& fn, Span statement) {
  bind(fn.name, SymbolKind::fn, statement, 0);
  fns_.push_back({fn.name.name.str(), statement});
  const size_t scope = fns_.size();
  for (const ast::FnParam& param : fn.params) {
    bind(param.name, SymbolKind::parameter, param.span, scope);
    if (param.type) bind_axes(*param.type, param.span, scope);
  }
  gather(fn.body.statements, scope);
  if (!fn.gradient) return;
  for (const ast::Identifier& name : fn.gradient->cotangents) bind(name, SymbolKind::parameter, fn.gradient->span, scope);
  gather(fn.gradient->body.statements, scope);
}

void Symbols::gather(const std::vector<ast::Stmt>& statements, size_t scope) {
  for (const ast::Stmt& statement : statements) {
    const Span span = statement.span;
    if (const auto* dims = statement.as<ast::DimDecl>()) {
      for (const ast::DimItem& item : dims->items) bind(item.name, SymbolKind::dim, item.span, scope);
    } else if (const auto* mesh = statement.as<ast::Mesh>()) {
      for (const ast::DimItem& item : mesh->items) bind(item.name, SymbolKind::dim, item.span, scope);
    } else if (const auto* tensor = statement.as<ast::TensorDecl>()) {
      const SymbolKind kind = tensor->role == ast::Role::input   ? SymbolKind::input
                              : tensor->role == ast::Role::state ? SymbolKind::state
                                                                 : SymbolKind::param;
      bind(tensor->name, kind, span, scope);
      bind_axes(tensor->type, span, scope);
    } else if (const auto* output = statement.as<ast::Output>()) {
      if (output->value) bind(output->name, SymbolKind::value, span, scope);
    } else if (const auto* fn = statement.as<ast::Fn>()) {
      bind_fn(*fn, span);
    } else if (const auto* assign = statement.as<ast::Assign>()) {
      for (const ast::Target& target : assign->targets) {
        bind(target.name, SymbolKind::value, span, scope);
        if (target.type) bind_axes(*target.type, span, scope);
      }
    } else if (const auto* loop = statement.as<ast::For>()) {
      bind(loop->variable, SymbolKind::loop_variable, span, scope);
      gather(loop->body.statements, scope);
    } else if (const auto* scan = statement.as<ast::Scan>()) {
      bind(scan->variable, SymbolKind::loop_variable, span, scope);
      if (scan->size) bind(scan->axis, SymbolKind::axis, span, scope);
      gather(scan->body.statements, scope);
    } else if (const auto* collect = statement.as<ast::Collect>()) {
      bind(collect->name, SymbolKind::value, span, scope);
    } else if (const auto* precision = statement.as<ast::Precision>()) {
      if (precision->body) gather(precision->body->statements, scope);
    } else if (const auto* choice = statement.as<ast::If>()) {
      gather(choice->then.statements, scope);
      if (choice->otherwise) gather(choice->otherwise->statements, scope);
    }
  }
}

size_t Symbols::scope_at(size_t offset) const {
  for (size_t i = 0; i < fns_.size(); ++i)
    if (offset >= fns_[i].span.begin && offset < fns_[i].span.end) return i + 1;
  return 0;
}

// `f(x, eps = 1)`: the parameter of f; `rearrange(x, "...", h = 8)`, `iota(k = 4)`: an axis here.
size_t Symbols::scope_of_keyword(std::string_view name, std::string_view callee, size_t scope) const {
  for (size_t i = 0; i < fns_.size(); ++i)
    if (fns_[i].name == callee) return find(name, i + 1) ? i + 1 : kNoScope;
  static constexpr std::string_view kWithAxes[] = {"einsum", "rearrange", "reduce", "repeat", "pack", "unpack", "iota", "one_hot",
                                                   "normal", "uniform",   "zeros",  "ones",   "full", "stack",  "pad",  "randint"};
  return std::find(std::begin(kWithAxes), std::end(kWithAxes), callee) != std::end(kWithAxes) ? scope : kNoScope;
}

void Symbols::read_words(const SourceMap& sources, FileId file) {
  Diagnostics unheard;
  const std::string_view text = sources.file(file).text();
  const std::vector<Token> tokens = lex(sources, file, unheard);
  struct Open {
    TokenKind kind;
    std::string_view callee;
  };
  std::vector<Open> open;
  const auto text_of = [&](const Token& t) { return text.substr(t.begin, t.end - t.begin); };
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& t = tokens[i];
    if (t.kind == TokenKind::left_paren || t.kind == TokenKind::left_bracket)
      open.push_back({t.kind, i > 0 && tokens[i - 1].kind == TokenKind::name ? text_of(tokens[i - 1]) : std::string_view()});
    if ((t.kind == TokenKind::right_paren || t.kind == TokenKind::right_bracket) && !open.empty()) open.pop_back();
    if (t.kind == TokenKind::left_brace || t.kind == TokenKind::right_brace) open.clear();
    const size_t scope = scope_at(t.begin);
    if (t.kind == TokenKind::name) {
      const bool named = i + 1 < tokens.size() && tokens[i + 1].kind == TokenKind::assign && !open.empty() && i > 0 &&
                         (tokens[i - 1].kind == TokenKind::comma || tokens[i - 1].kind == TokenKind::left_paren);
      const bool header =
          scope != 0 && t.begin < fns_[scope - 1].span.end && i > 0 && !open.empty() && open.back().callee == fns_[scope - 1].name;
      const bool keyword = named && open.back().kind == TokenKind::left_paren && !header;
      words_.push_back({text_of(t), t.begin, t.end, keyword ? scope_of_keyword(text_of(t), open.back().callee, scope) : scope, false});
    } else if (t.kind == TokenKind::string && text_of(t).find(' ') != std::string_view::npos) {
      for (uint32_t at = t.begin; at < t.end;) {
        const uint32_t begin = at;
        while (at < t.end && is_name_char(text[at])) ++at;
        if (at > begin && is_name_start(text[begin])) words_.push_back({text.substr(begin, at - begin), begin, at, scope, true});
        if (at == begin) ++at;
      }
    }
  }
}

const SymbolWord* Symbols::word_at(size_t offset) const {
  const auto next = std::upper_bound(words_.begin(), words_.end(), offset, [](size_t o, const SymbolWord& w) { return o < w.begin; });
  if (next == words_.begin()) return nullptr;
  const SymbolWord& word = *(next - 1);
  return offset <= word.end ? &word : nullptr;
}

const SymbolBinding* Symbols::find(std::string_view name, size_t scope) const {
  for (const SymbolBinding& d : definitions_)
    if (d.scope == scope && d.name == name) return &d;
  return nullptr;
}

const SymbolBinding* Symbols::definition_of(const SymbolWord& word) const {
  if (word.scope == kNoScope) return nullptr;
  if (const SymbolBinding* own = find(word.text, word.scope)) return own;
  const SymbolBinding* outer = word.scope == 0 ? nullptr : find(word.text, 0);
  return outer && (outer->kind == SymbolKind::dim || outer->kind == SymbolKind::fn) ? outer : nullptr;
}

std::vector<const SymbolWord*> Symbols::references_of(const SymbolWord& word) const {
  std::vector<const SymbolWord*> found;
  if (word.scope == kNoScope) return found;
  const SymbolBinding* wanted = definition_of(word);
  for (const SymbolWord& other : words_) {
    if (other.text != word.text || other.scope == kNoScope) continue;
    const SymbolBinding* meant = definition_of(other);
    if (meant == wanted && (wanted || other.scope == word.scope)) found.push_back(&other);
  }
  return found;
}

std::vector<const SymbolBinding*> Symbols::visible_at(size_t offset) const {
  std::vector<const SymbolBinding*> found;
  const size_t scope = scope_at(offset);
  for (const SymbolBinding& d : definitions_)
    if (d.scope == scope || (d.scope == 0 && (d.kind == SymbolKind::dim || d.kind == SymbolKind::fn))) found.push_back(&d);
  return found;
}

}  // namespace einc
