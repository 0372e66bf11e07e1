// SPDX-License-Identifier: Apache-2.0
// Answers about values: hover, completion, inlay shapes.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "compiler/elaborate/builtins.h"
#include "compiler/elaborate/elaborate.h"
#include "compiler/lsp/language_server.h"
#include "dsl/token.h"

namespace einc {
namespace {

uint32_t line_at(const Analysis& analysis, uint32_t offset) { return analysis.sources.file(*analysis.file).locate(offset).line; }

std::string amount(double value, std::string_view unit) {
  static constexpr std::string_view kPrefixes[] = {"", " k", " M", " G", " T", " P"};
  size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < std::size(kPrefixes)) value /= 1000, ++prefix;
  return fmt::format("{:.4g}{}{}{}", value, kPrefixes[prefix], prefix == 0 ? " " : "", unit);
}

// "forward: 2.4 G FLOPs, 25 MB read and written; fused", of the ops of a statement.
std::string cost_text(const std::vector<LineCost>& costs, std::string_view name, uint32_t first, uint32_t last) {
  double flops = 0, bytes = 0;
  std::string storage;
  bool found = false;
  for (const LineCost& cost : costs) {
    if (cost.line < first || cost.line > last) continue;
    found = true;
    flops += cost.flops;
    bytes += cost.bytes;
    if (cost.label == name) storage = cost.storage;
  }
  if (!found) return "";
  return fmt::format("{} forward, {} read and written{}{}", amount(flops, "FLOPs"), amount(bytes, "B"), storage.empty() ? "" : "; ",
                     storage);
}

std::string code(std::string_view text) { return fmt::format("```ein\n{}\n```", text); }

// The signature of a built-in function and what it gives; empty for none.
std::string builtin_text(std::string_view name) {
  for (const auto rows : builtin_tables())
    for (const Builtin& builtin : rows)
      if (builtin.name == name) return code(builtin.signature) + "\n" + std::string(builtin.gives);
  return "";
}

// A bundled fn: its comment and header.
std::string bundled_text(std::string_view name) {
  const auto library = bundled_library("nn");
  const size_t at = library ? library->find(fmt::format("\nfn {}(", name)) : std::string_view::npos;
  if (at == std::string_view::npos) return "";
  const std::string_view header = library->substr(at + 1, library->find('{', at) - at - 1);
  size_t begin = at + 1;
  while (begin > 1) {
    const size_t line = library->rfind('\n', begin - 2) + 1;
    if ((*library)[line] != '#') break;
    begin = line;
  }
  std::string comment(library->substr(begin, at + 1 - begin));
  std::erase(comment, '#');
  return code(header) + "\n" + comment;
}

}  // namespace

LspJson hover(const OpenFile& file, const Analysis& analysis, size_t offset) {
  const SymbolWord* word = analysis.symbols->word_at(offset);
  if (!word) return nullptr;
  std::string text;
  const SymbolBinding* bound = analysis.symbols->definition_of(*word);
  if (!bound) {
    text = word->in_pattern ? "" : builtin_text(word->text);
    if (text.empty() && !word->in_pattern) text = bundled_text(word->text);
    if (text.empty()) return nullptr;
  } else if (bound->kind == SymbolKind::value || bound->kind == SymbolKind::input || bound->kind == SymbolKind::param) {
    // A name that is bound several times: by the binding here or the last before.
    uint32_t at = bound->span.begin;
    for (const SymbolWord* other : analysis.symbols->references_of(*word))
      if (other->begin <= word->begin && !types_at(analysis, other->begin).empty()) at = other->begin;
    const std::vector<std::string>& types = types_at(analysis, at);
    std::string_view source = analysis.sources.text(bound->statement);
    source = source.substr(0, source.find('\n'));
    text = code(types.empty() ? std::string(source)
                              : fmt::format("{} {}: {}", to_string(bound->kind), word->text, fmt::join(types, "  or  ")));
    const uint32_t line = line_at(analysis, at);
    if (const std::string cost = cost_text(file.costs, word->text, line, line); !cost.empty()) text += "\n" + cost + "\n";
    if (const std::string path = gradient_path(analysis, word->text, at); !path.empty())
      text += "\ngradient from the loss by: " + path + "\n";
  } else {
    std::string_view source = analysis.sources.text(bound->kind == SymbolKind::axis ? bound->span : bound->statement);
    source = source.substr(0, std::min(source.find('\n'), source.find('{')));
    text = code(fmt::format(
        "{}{}", bound->kind == SymbolKind::fn || bound->kind == SymbolKind::dim ? "" : std::string(to_string(bound->kind)) + " ", source));
  }
  return {{"contents", {{"kind", "markdown"}, {"value", text}}}, {"range", file.document.range(word->begin, word->end)}};
}

LspJson completion(const OpenFile& file, const Analysis& analysis, size_t offset) {
  constexpr int kFunction = 3, kVariable = 6, kKeyword = 14, kConstant = 21;
  LspJson items = LspJson::array();
  const std::string& text = file.document.text();
  size_t before = offset;
  while (before > 0 && (std::isalnum(static_cast<unsigned char>(text[before - 1])) || text[before - 1] == '_')) --before;
  while (before > 0 && text[before - 1] == ' ') --before;
  const auto add = [&](std::string_view name, int kind, std::string_view detail) {
    items.push_back({{"label", name}, {"kind", kind}, {"detail", detail}});
  };
  if (before > 0 && text[before - 1] == '~') {
    for (const char* name : {"zeros", "ones", "constant", "normal", "uniform", "trunc_normal", "xavier"})
      add(name, kFunction, "initialiser");
    return items;
  }
  if (before >= 5 && text.compare(before - 5, 5, "using") == 0) {
    for (const char* name : {"sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw"}) add(name, kFunction, "optimizer");
    return items;
  }
  const size_t line = text.rfind('\n', offset == 0 ? 0 : offset - 1);
  const size_t begin = line == std::string::npos ? 0 : line;
  const bool in_pattern =
      std::count(text.begin() + static_cast<std::ptrdiff_t>(begin), text.begin() + static_cast<std::ptrdiff_t>(offset), '"') % 2 == 1;
  for (const SymbolBinding* d : analysis.symbols->visible_at(offset)) {
    const bool axis = d->kind == SymbolKind::dim || d->kind == SymbolKind::axis;
    if (!in_pattern || axis) add(d->name, d->kind == SymbolKind::fn ? kFunction : axis ? kConstant : kVariable, to_string(d->kind));
  }
  if (in_pattern) return items;
  for (const auto rows : builtin_tables())
    for (const Builtin& builtin : rows) add(builtin.name, kFunction, builtin.signature);
  if (text.find("import nn") != std::string::npos) {
    const std::string_view library = bundled_library("nn").value_or("");
    for (size_t at = library.find("\nfn "); at != std::string_view::npos; at = library.find("\nfn ", at + 1)) {
      const std::string_view header = library.substr(at + 4, library.find('{', at) - at - 5);
      add(header.substr(0, header.find('(')), kFunction, header);
    }
  }
  for (const char* word : {"dim", "import", "input",   "param", "frozen", "state",     "output",   "fn",   "return",  "for",
                           "in",  "scan",   "collect", "if",    "else",   "precision", "minimize", "over", "using",   "as",
                           "and", "or",     "not",     "true",  "false",  "inf",       "nan",      "pi",   "training"})
    add(word, kKeyword, "");
  return items;
}

// The type of each value that has no annotation, behind its name.
LspJson inlay_shapes(const OpenFile& file, const Analysis& analysis, size_t begin, size_t end) {
  constexpr int kType = 1;
  LspJson hints = LspJson::array();
  if (!analysis.graph) return hints;
  const std::string& text = file.document.text();
  for (const SymbolWord& word : analysis.symbols->words()) {
    if (word.in_pattern || word.begin < begin || word.end > end) continue;
    const size_t next = std::min(text.find_first_not_of(' ', word.end), text.size());
    const bool assigned = next + 1 < text.size() && text[next] == '=' && text[next + 1] != '=';
    const SymbolBinding* bound = assigned ? analysis.symbols->definition_of(word) : nullptr;
    if (!bound || bound->kind != SymbolKind::value) continue;
    const std::vector<std::string>& types = types_at(analysis, word.begin);
    if (types.size() == 1)
      hints.push_back(
          {{"position", file.document.position(word.end)}, {"label", ": " + types[0]}, {"kind", kType}, {"paddingRight", true}});
  }
  return hints;
}

}  // namespace einc
