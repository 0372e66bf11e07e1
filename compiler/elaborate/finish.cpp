// SPDX-License-Identifier: Apache-2.0
// The run over a program, and what is checked once its graph is whole: outputs, conditions on the dims, sizes in 63 bits.
#include <algorithm>
#include <unordered_set>

#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/size_limit.h"
#include "compiler/elaborate/unused.h"

namespace einc {

Elaborator::Elaborator(SourceMap& sources, const ElaborateOptions& options, Diagnostics& diagnostics)
    : sources_(sources),
      options_(options),
      diagnostics_(diagnostics),
      units_(sources, options.import_folders, diagnostics),
      build_(graph_) {}

std::optional<Graph> Elaborator::run(FileId file) {
  const size_t errors = diagnostics_.error_count();
  const std::string& path = sources_.file(file).name();
  const size_t slash = path.rfind('/');
  graph_.name = Name(slash == std::string::npos ? path : path.substr(slash + 1));
  SourceUnit* main = units_.load_main(file);
  for (size_t i = 0; i < units_.all().size(); ++i) declare_dims(*units_.all()[i]);
  declare_mesh(*main);
  bind_dims();
  read_file_policy(*main);
  Frame top;
  top.unit = main;
  frame_ = &top;
  for (const ast::Stmt& statement : main->program.statements) {
    if (exhausted_ || diagnostics_.full()) break;
    execute(statement);
  }
  finish_training();
  check_uncalled_fns();
  finish_outputs(*main);
  if (diagnostics_.error_count() == errors) finish_mesh();
  if (options_.pullback == Pullback::of_outputs && diagnostics_.error_count() == errors) add_pullback();
  if (diagnostics_.error_count() == errors) check_conditions();
  if (diagnostics_.error_count() == errors) check_sizes();
  frame_ = nullptr;
  if (diagnostics_.error_count() != errors) return std::nullopt;
  if (options_.unused_names == UnusedNames::reported)
    for (const auto& unit : units_.all())
      if (!unit->bundled) warn_of_unused(sources_, *unit, diagnostics_);
  remove_marks();
  return std::move(graph_);
}

void Elaborator::finish_outputs(const SourceUnit& unit) {
  if (!outputs_.empty() || exhausted_) return;
  if (!minimized_.statement) {
    if (!unit.incomplete && !unit.program.statements.empty())
      diagnostics_.report(Code::no_result, Span{unit.file, 0, 0}).hint("write `output y`, or `minimize loss using adamw(lr = 1e-3)`");
    return;
  }
  if (!minimized_.loss.valid()) return;
  const auto* name = minimized_.statement->loss->as<ast::NameRef>();
  graph_.outputs.push_back(Output{name ? name->name : Name("loss"), minimized_.loss});
}

void Elaborator::check_conditions() {
  BindResult bound = graph_.dims.bind(options_.dims);
  std::erase_if(bound.problems, [](const BindProblem& problem) { return problem.kind != BindProblemKind::condition; });
  report_bind_problems(bound);
}

// Every tensor's bytes fit in 63 bits, for the values in use; with free dims unset, as a condition on them.
void Elaborator::check_sizes() {
  constexpr int64_t kLargest = INT64_MAX;
  std::unordered_map<Poly, int64_t> known;  // -1: depends on an unset dim
  std::unordered_set<Poly> required;
  for (const Node& node : graph_.nodes) {
    int64_t bytes = bytes_of(node.type.dtype);
    bool unset = false, fits = true;
    size_t terms = 1;
    for (const Axis& axis : node.type.axes) {
      const auto [place, fresh] = known.try_emplace(axis.size, -1);
      if (fresh)
        if (const auto value = axis.size.evaluate(values_)) place->second = value->as_integer().value_or(0);
      const int64_t size = place->second;
      if (terms <= kMaxSizeTerms) terms *= axis.size.term_count();
      unset = unset || size < 0;
      if (size < 0) continue;
      fits = fits && size != 0 && !__builtin_mul_overflow(bytes, size, &bytes);
      if (!fits) break;
    }
    if (terms > kMaxSizeTerms) {
      check_size_terms(diagnostics_, node.type.axes, span_of(node));
      return;
    }
    if (!fits) {
      diagnostics_.report(Code::tensor_too_large, span_of(node), show(node.type));
    } else if (unset) {
      const Poly formula = node.type.bytes();
      if (required.insert(formula).second)
        graph_.dims.require(Condition{ConditionKind::fits, formula, Poly(kLargest), tag(span_of(node)), "the bytes of a tensor"});
    }
    if (diagnostics_.full()) return;
  }
}

Span Elaborator::span_of(const Node& node) const {
  for (const auto& entry : locations_)
    if (entry.second.location == node.origin.location) return entry.second.span;
  return {};
}

void Elaborator::remove_marks() {
  for (Node& node : graph_.nodes)
    for (Axis& axis : node.type.axes) axis.name = without_marks(axis.name);
}

std::optional<Graph> elaborate(SourceMap& sources, FileId file, const ElaborateOptions& options, Diagnostics& diagnostics) {
  return Elaborator(sources, options, diagnostics).run(file);
}

}  // namespace einc
