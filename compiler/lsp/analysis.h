// SPDX-License-Identifier: Apache-2.0
// What is known about one version of a file: its diagnostics, names, and the types of its values, from the graph that it elaborates to.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/lsp/symbols.h"
#include "dsl/diagnostic.h"

namespace einc {

// Costs of the ops of a statement, over all its instances.
struct LineCost {
  uint32_t line = 0;  // of the op
  std::string label;  // the value's name, where the op is one
  double flops = 0, bytes = 0;
  std::string storage;  // "view", "fused" or "materialized"
};

struct Analysis {
  SourceMap sources;
  Diagnostics diagnostics;
  std::optional<FileId> file;  // nullopt: the text could not be taken in
  ast::Program program;
  std::unique_ptr<Symbols> symbols;  // null without `file`
  bool is_elaborated = false;
  struct BoundValue {
    std::vector<std::string> types;
    NodeId last;
  };
  std::map<uint32_t, BoundValue> bound;  // by where the name stands in the file
  std::optional<Graph> graph;            // as written; empty after an error and before elaborate_now
};

// Reads a text: milliseconds for any model. `path` is the file's name: imports are looked for beside it.
std::unique_ptr<Analysis> analyse(const std::string& path, const std::string& text);
// Adds the graph and all diagnostics: a tenth of a second for a large model.
void elaborate_now(Analysis& analysis);

// The types of the value bound to the name at this place, each once: in a fn one for each call that differs. Empty: no value is bound
// there.
const std::vector<std::string>& types_at(const Analysis& analysis, uint32_t begin);

// The names of values from the one bound at this place to the loss: "h, logits, loss". Empty where the loss does not depend on it, or the
// value is no node of the graph by that name: one of a scan's body, or another's.
std::string gradient_path(const Analysis& analysis, std::string_view name, uint32_t begin);

}  // namespace einc
