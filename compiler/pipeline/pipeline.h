// SPDX-License-Identifier: Apache-2.0
// The whole way from text to a final graph: load, elaborate, then the list of passes. Shared by every subcommand and the tests.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/elaborate/elaborate.h"
#include "compiler/ir/graph.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/roots.h"
#include "dsl/diagnostic.h"
#include "dsl/source.h"

namespace einc {

struct PipelineOptions {
  Bindings dims;                       // -D name=value
  Policy precision = Policy::inherit;  // --precision
  Roots roots = Roots::training;
  ParamStorage storage = ParamStorage::masters;  // run_passes decides: masters for what has a loss, in all its parts
  WorkLimits limits{};
  TrainingOptions training;
  Pullback pullback = Pullback::none;
  bool training_mode = false;  // of a forward: dropout acts
  UnusedNames unused_names = UnusedNames::allowed;
  std::vector<std::string> import_folders;  // -I
  std::vector<std::string> disabled;        // --disable=PASS
  bool without_mesh = false;                // the program's own mesh and shard lines are left out
  std::string mesh, shard;                  // --mesh, --shard
  std::function<void(Op declared, Name path, const std::vector<DeclaredAxis>& axes)> declared;  // as in ElaborateOptions
  // Called after elaboration ("elaborate") and after each pass, with the seconds it took.
  std::function<void(std::string_view pass, const Graph& graph, double seconds)> observe;
};

struct Pass {
  std::string_view name;
  std::string_view description;
  Graph (*run)(Graph graph, const PipelineOptions& options);
  bool optional;  // may be disabled
};
// In the order they run.
std::span<const Pass> passes();

Graph run_passes(Graph graph, const PipelineOptions& options);

struct Compilation {
  SourceMap sources;
  Diagnostics diagnostics;
  std::optional<Graph> elaborated;  // as written: composites kept, nothing simplified; set even when dims do not bind
  std::optional<Graph> graph;       // final; empty after an error
};

// Compiles a file, or text in memory under a name to show for it. What is wrong is in `diagnostics`.
Compilation compile_file(const std::string& path, const PipelineOptions& options);
Compilation compile_text(std::string name, std::string text, const PipelineOptions& options);
// The same program, as it was read then, in other dims and unobserved. Imported files are read again.
Compilation compile_again(const Compilation& before, PipelineOptions options, const Bindings& dims);

}  // namespace einc
