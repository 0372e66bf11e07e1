// SPDX-License-Identifier: Apache-2.0
// A name is unused when all words of the file that spell it are its own bindings. Words are counted, not scopes: what is bound twice
// and read once passes, and nothing that is read is ever named.
#include "compiler/elaborate/unused.h"

#include <algorithm>

#include "runtime/base/ascii.h"

namespace einc {
namespace {

struct Declared {
  std::string_view what;
  Span span;
};

// What one file binds, in order, and the states that it updates.
struct BoundNames {
  std::vector<std::pair<Name, Declared>> names;
  std::unordered_map<Name, int> counts;
  std::unordered_map<Name, Span> states;
  std::unordered_map<Name, int> updated;

  void add(const ast::Identifier& name, std::string_view what) {
    ++counts[name.name];
    if (!name.name.str().starts_with('_')) names.push_back({name.name, {what, name.span}});
  }
};

void gather_bound(const std::vector<ast::Stmt>& statements, BoundNames& out);

void gather_bound(const ast::Stmt& statement, BoundNames& out) {
  if (const auto* assign = statement.as<ast::Assign>()) {
    if (assign->targets.size() == 1) out.add(assign->targets[0].name, "value");  // of several values one may be wanted
  } else if (const auto* tensor = statement.as<ast::TensorDecl>()) {
    if (tensor->role == ast::Role::input) out.add(tensor->name, "input");
    if (tensor->role == ast::Role::state) out.states.emplace(tensor->name.name, tensor->name.span);
  } else if (const auto* update = statement.as<ast::StateUpdate>()) {
    ++out.updated[update->name.name];
  } else if (const auto* collect = statement.as<ast::Collect>()) {
    out.add(collect->name, "value");
  } else if (const auto* fn = statement.as<ast::Fn>()) {
    gather_bound(fn->body.statements, out);
    if (fn->gradient) gather_bound(fn->gradient->body.statements, out);
  } else if (const auto* loop = statement.as<ast::For>()) {
    gather_bound(loop->body.statements, out);
  } else if (const auto* scan = statement.as<ast::Scan>()) {
    gather_bound(scan->body.statements, out);
  } else if (const auto* precision = statement.as<ast::Precision>()) {
    if (precision->body) gather_bound(precision->body->statements, out);
  } else if (const auto* choice = statement.as<ast::If>()) {
    gather_bound(choice->then.statements, out);
    if (choice->otherwise) gather_bound(choice->otherwise->statements, out);
  }
}

void gather_bound(const std::vector<ast::Stmt>& statements, BoundNames& out) {
  for (const ast::Stmt& statement : statements) gather_bound(statement, out);
}

// How often each word stands in the text, comments left out.
std::unordered_map<std::string_view, int> words_of(std::string_view text) {
  std::unordered_map<std::string_view, int> words;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '#') at = std::min(text.find('\n', at), text.size());
    if (at == text.size()) break;
    if (!is_name_char(text[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < text.size() && is_name_char(text[at])) ++at;
    ++words[text.substr(begin, at - begin)];
  }
  return words;
}

}  // namespace

void warn_of_unused(const SourceMap& sources, const SourceUnit& unit, Diagnostics& diagnostics) {
  BoundNames bound;
  gather_bound(unit.program.statements, bound);
  const auto words = words_of(sources.file(unit.file).text());
  for (const auto& [name, declared] : bound.names) {
    const auto found = words.find(name.str());
    if (found == words.end() || found->second > bound.counts.at(name)) continue;
    auto report = diagnostics.report(Code::unused_name, declared.span, declared.what, name);
    const std::string_view cure = declared.what == "input" ? "leave it out" : "leave it out, or declare it an `output`";
    report.hint("{}; a name that begins with `_` is never reported", cure);
  }
  for (const auto& [name, span] : bound.states)
    if (!bound.updated.contains(name))
      diagnostics.report(Code::state_never_updated, span, name)
          .hint("update it, `{} <- ...`; what never changes is a `frozen param`", name);
  for (const ast::Stmt& statement : unit.program.statements) {
    const auto* import = statement.as<ast::Import>();
    const SourceUnit* other = import ? unit.import_at(*import) : nullptr;
    if (!other || !other->dims.empty() || other->fns.empty()) continue;
    const bool used = std::any_of(other->fns.begin(), other->fns.end(), [&](const auto& fn) { return words.contains(fn.first.str()); });
    if (!used) diagnostics.report(Code::unused_import, import->path_span, import->path).hint("leave the import out");
  }
}

}  // namespace einc
