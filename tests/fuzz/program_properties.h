// SPDX-License-Identifier: Apache-2.0
// What must hold for any program whatever: elaboration gives a graph or says why not, every pass keeps the graph valid, the
// printed graph reads back, and all of it can be counted, explained and drawn. With limits that keep one program quick.
#pragma once
#include <string>
#include <utility>
#include <variant>

#include "compiler/driver/emit.h"
#include "compiler/ir/print.h"
#include "compiler/ir/read.h"
#include "compiler/ir/verify.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/report/json.h"
#include "compiler/report/report.h"
#include "compiler/report/text.h"
#include "dsl/render.h"
#include "runtime/base/check.h"

namespace einc::fuzz {

inline void check_valid(std::string_view pass, const Graph& graph) {
  for (const std::string& problem : verify(graph)) EINC_CHECK(false, "after {}: {}", pass, problem);
}

inline void check_reads_back(const Graph& graph) {
  const std::string printed = print_graph(graph);
  const auto again = read_graph(printed);
  if (const auto* error = std::get_if<GraphReadError>(&again)) EINC_CHECK(false, "line {}: {}", error->line, error->message);
  EINC_CHECK(print_graph(std::get<Graph>(again)) == printed, "a printed graph reads back");
}

inline void check_views(const Graph& graph, const Graph& elaborated) {
  const Bindings values = graph.dims.bind({}).values;
  emit_grad(graph);
  emit_shapes(elaborated, values);
  emit_dot(graph);
  emit_json(graph);
  explain_precision(graph);
  explain_contraction(graph, values);
  ReportOptions options;
  options.detail = Detail::ops;
  const Report report = build_report(graph, options);
  render_text(report);
  render_json(report, graph);
  explain_memory(report, graph);
}

inline void check_program(std::string text) {
  PipelineOptions options;
  options.limits = {.graph_nodes = 2'000, .iterations = 64};
  options.observe = [](std::string_view pass, const Graph& graph, double) { check_valid(pass, graph); };
  const Compilation c = compile_text("fuzz.ein", std::move(text), options);
  EINC_CHECK(c.graph.has_value() != c.diagnostics.has_errors(), "a graph is given back exactly when there is no error");
  EINC_CHECK(render_text(c.sources, c.diagnostics).size() <= kMaxRenderedBytes, "too much text");
  render_json(c.sources, c.diagnostics);
  if (!c.graph) return;
  check_reads_back(*c.elaborated);
  check_reads_back(*c.graph);
  check_views(*c.graph, *c.elaborated);
}

}  // namespace einc::fuzz
