// SPDX-License-Identifier: Apache-2.0
// The names of a file: where each is bound, and which words mean the same thing. Scopes are the top level and the fns: a fn sees the
// file's dims and fns and what it binds itself. Words inside patterns are names of axes. Works on any text, also one that does not parse.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/ast.h"

namespace einc {

enum class SymbolKind : uint8_t { dim, input, param, state, fn, parameter, axis, value, loop_variable };
std::string_view to_string(SymbolKind kind);

struct SymbolBinding {  // where a name is bound first in its scope
  std::string name;
  SymbolKind kind;
  Span span;
  Span statement;
  size_t scope;  // 0: the top level; else 1 + the index in Symbols::fns
};

struct FnScope {
  std::string name;
  Span span;
};

struct SymbolWord {
  std::string_view text;
  uint32_t begin, end;
  size_t scope;  // in which its name is looked up; kNoScope: a keyword argument or a word of no scope
  bool in_pattern;
};

inline constexpr size_t kNoScope = SIZE_MAX;

class Symbols {
 public:
  Symbols(const SourceMap& sources, const ast::Program& program);

  const std::vector<SymbolWord>& words() const { return words_; }
  const std::vector<SymbolBinding>& definitions() const { return definitions_; }
  const SymbolWord* word_at(size_t offset) const;  // the one that holds or ends at the offset
  size_t scope_at(size_t offset) const;
  // What binds the word's name: in its scope, else a dim or fn of the top level; null for an axis of patterns alone or an unknown name.
  const SymbolBinding* definition_of(const SymbolWord& word) const;
  // Every word that means the same, the definition included, in order.
  std::vector<const SymbolWord*> references_of(const SymbolWord& word) const;
  // Names that may be written at the offset.
  std::vector<const SymbolBinding*> visible_at(size_t offset) const;

 private:
  void gather(const std::vector<ast::Stmt>& statements, size_t scope);
  void bind(const ast::Identifier& name, SymbolKind kind, Span statement, size_t scope);
  void bind_axes(const ast::Type& type, Span statement, size_t scope);
  void bind_fn(const ast::Fn& fn, Span statement);
  void read_words(const SourceMap& sources, FileId file);
  size_t scope_of_keyword(std::string_view name, std::string_view callee, size_t scope) const;
  const SymbolBinding* find(std::string_view name, size_t scope) const;

  std::vector<SymbolBinding> definitions_;
  std::vector<FnScope> fns_;
  std::vector<SymbolWord> words_;
};

}  // namespace einc
