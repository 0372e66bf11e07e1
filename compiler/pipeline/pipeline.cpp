// SPDX-License-Identifier: Apache-2.0
#include "compiler/pipeline/pipeline.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "compiler/precision/assign.h"
#include "compiler/simplify/dead.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"

namespace einc {
namespace {

constexpr Pass kPasses[] = {
    {"expand", "composites into primitives, unused nodes dropped",
     [](Graph g, const PipelineOptions& o) { return remove_dead(expand(std::move(g), o.roots), o.roots); }, false},
    {"simplify", "rewrite rules, constants folded, equal nodes merged",
     [](Graph g, const PipelineOptions& o) { return simplify(std::move(g), o.roots); }, true},
    {"precision", "a dtype for every node, casts as nodes",
     [](Graph g, const PipelineOptions& o) {
       const bool steps = trains(o.roots) && g.loss.valid();
       return assign_precision(g, o.precision, steps ? Fp8Scaling::delayed : Fp8Scaling::current, o.storage);
     },
     false},
};

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

Compilation compile_loaded(Compilation c, std::optional<FileId> file, const PipelineOptions& options) {
  if (!file) return c;
  const Stopwatch watch;
  ElaborateOptions elaborate_options;
  elaborate_options.dims = options.dims;
  elaborate_options.limits = options.limits;
  elaborate_options.training = options.training;
  elaborate_options.pullback = options.pullback;
  elaborate_options.unused_names = options.unused_names;
  elaborate_options.import_folders = options.import_folders;
  elaborate_options.declared = options.declared;
  elaborate_options.without_mesh = options.without_mesh;
  elaborate_options.mesh = options.mesh;
  elaborate_options.shard = options.shard;
  if (options.precision != Policy::inherit) elaborate_options.precision = options.precision;
  c.elaborated = elaborate(c.sources, *file, elaborate_options, c.diagnostics);
  if (!c.elaborated) return c;
  if (options.observe) options.observe("elaborate", *c.elaborated, watch.seconds());
  c.graph = run_passes(*c.elaborated, options);
  return c;
}

}  // namespace

std::span<const Pass> passes() { return kPasses; }

Graph run_passes(Graph graph, const PipelineOptions& given) {
  PipelineOptions options = given;
  options.storage = graph.loss.valid() ? ParamStorage::masters : ParamStorage::as_read;
  for (const Pass& pass : kPasses) {
    if (pass.optional && std::find(options.disabled.begin(), options.disabled.end(), pass.name) != options.disabled.end()) continue;
    const Stopwatch watch;
    graph = pass.run(std::move(graph), options);
    if (options.observe) options.observe(pass.name, graph, watch.seconds());
  }
  return graph;
}

Compilation compile_file(const std::string& path, const PipelineOptions& options) {
  Compilation c;
  const std::optional<FileId> file = c.sources.load(path, c.diagnostics);
  return compile_loaded(std::move(c), file, options);
}

Compilation compile_text(std::string name, std::string text, const PipelineOptions& options) {
  Compilation c;
  const std::optional<FileId> file = c.sources.add(std::move(name), std::move(text), c.diagnostics);
  return compile_loaded(std::move(c), file, options);
}

Compilation compile_again(const Compilation& before, PipelineOptions options, const Bindings& dims) {
  options.dims = dims;
  options.observe = nullptr;
  Compilation c;
  c.sources = before.sources;
  return compile_loaded(std::move(c), before.sources.file_count() == 0 ? std::nullopt : std::optional(FileId{1}), options);
}

}  // namespace einc
