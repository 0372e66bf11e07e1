// SPDX-License-Identifier: Apache-2.0
// Answers about diagnostics and names: published diagnostics, code actions, definition, references, rename, outline, formatting.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "compiler/lsp/language_server.h"
#include "dsl/format.h"
#include "dsl/token.h"
#include "runtime/base/ascii.h"
#include "runtime/base/dtype.h"

namespace einc {
namespace {

constexpr int kError = 1, kWarning = 2;

LspJson range_of(const OpenFile& file, Span span) { return file.document.range(span.begin, span.end); }

bool is_own(const Analysis& analysis, Span span) { return span.known() && span.file == *analysis.file; }

}  // namespace

LspJson diagnostics_of(const OpenFile& file, const Analysis& analysis) {
  LspJson list = LspJson::array();
  for (const Diagnostic& d : analysis.diagnostics.list()) {
    const bool own = analysis.file && is_own(analysis, d.span);
    std::string message = d.message;
    if (!own && d.span.known())
      message = fmt::format("{}:{}: {}", analysis.sources.file(d.span.file).name(), analysis.sources.begin_of(d.span).line, message);
    if (!d.hint.empty()) message += "\nhint: " + d.hint;
    LspJson item{{"range", own ? range_of(file, d.span) : file.document.range(0, 0)},
                 {"severity", d.severity == Severity::error ? kError : kWarning},
                 {"code", info(d.code).code},
                 {"source", "einc"},
                 {"message", std::move(message)}};
    for (const Label& label : d.labels)
      if (analysis.file && is_own(analysis, label.span))
        item["relatedInformation"].push_back(
            {{"location", {{"uri", file.uri}, {"range", range_of(file, label.span)}}}, {"message", label.text}});
    list.push_back(std::move(item));
  }
  return list;
}

LspJson code_actions(const OpenFile& file, const Analysis& analysis, size_t begin, size_t end) {
  LspJson actions = LspJson::array();
  for (const Diagnostic& d : analysis.diagnostics.list()) {
    if (d.replacements.empty() || !is_own(analysis, d.span) || d.span.begin > end || d.span.end < begin) continue;
    LspJson edits = LspJson::array();
    for (const Replacement& r : d.replacements)
      if (is_own(analysis, r.span)) edits.push_back({{"range", range_of(file, r.span)}, {"newText", r.text}});
    if (edits.size() != d.replacements.size()) continue;
    const std::string& text = d.replacements[0].text;
    const bool plain = d.replacements.size() == 1 && text.find('\n') == std::string::npos && !text.empty();
    actions.push_back({{"title", plain ? "write `" + text + "`" : d.hint},
                       {"kind", "quickfix"},
                       {"isPreferred", true},
                       {"edit", {{"changes", {{file.uri, edits}}}}}});
  }
  return actions;
}

LspJson definition(const OpenFile& file, const Analysis& analysis, size_t offset) {
  const SymbolWord* word = analysis.symbols->word_at(offset);
  const SymbolBinding* bound = word ? analysis.symbols->definition_of(*word) : nullptr;
  if (!bound) return nullptr;
  return {{"uri", file.uri}, {"range", range_of(file, bound->span)}};
}

LspJson references(const OpenFile& file, const Analysis& analysis, size_t offset) {
  LspJson list = LspJson::array();
  const SymbolWord* word = analysis.symbols->word_at(offset);
  if (!word) return list;
  for (const SymbolWord* other : analysis.symbols->references_of(*word))
    list.push_back({{"uri", file.uri}, {"range", file.document.range(other->begin, other->end)}});
  return list;
}

LspJson rename_symbol(const OpenFile& file, const Analysis& analysis, size_t offset, const std::string& name) {
  const bool is_name = !name.empty() && is_name_start(name[0]) && std::all_of(name.begin(), name.end(), is_name_char);
  if (!is_name || keyword_kind(name) != TokenKind::name || parse_dtype(name)) throw std::runtime_error("`" + name + "` cannot be a name");
  const SymbolWord* word = analysis.symbols->word_at(offset);
  if (!word) return nullptr;
  LspJson edits = LspJson::array();
  for (const SymbolWord* other : analysis.symbols->references_of(*word)) {
    if (other->text == word->text) edits.push_back({{"range", file.document.range(other->begin, other->end)}, {"newText", name}});
  }
  for (const SymbolBinding* taken : analysis.symbols->visible_at(offset))
    if (taken->name == name) throw std::runtime_error("`" + name + "` is taken here");
  if (edits.empty() || (!analysis.symbols->definition_of(*word) && !word->in_pattern)) return nullptr;
  return {{"changes", {{file.uri, edits}}}};
}

LspJson document_symbols(const OpenFile& file, const Analysis& analysis) {
  constexpr int kFunction = 12, kVariable = 13, kConstant = 14;
  LspJson list = LspJson::array();
  for (const SymbolBinding& d : analysis.symbols->definitions()) {
    if (d.scope != 0) continue;
    list.push_back({{"name", d.name},
                    {"detail", to_string(d.kind)},
                    {"kind", d.kind == SymbolKind::fn    ? kFunction
                             : d.kind == SymbolKind::dim ? kConstant
                                                         : kVariable},
                    {"range", range_of(file, join(d.statement, d.span))},
                    {"selectionRange", range_of(file, d.span)}});
  }
  return list;
}

LspJson formatting(const OpenFile& file) {
  SourceMap sources;
  Diagnostics unheard;
  const auto id = sources.add(file.path, file.document.text(), unheard);
  const auto text = id ? format(sources, *id, unheard) : std::nullopt;
  if (!text || *text == file.document.text()) return LspJson::array();
  return LspJson::array({{{"range", file.document.range(0, file.document.text().size())}, {"newText", *text}}});
}

}  // namespace einc
