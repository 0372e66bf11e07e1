// SPDX-License-Identifier: Apache-2.0
// Compiles text given in a test: the graph, and what was said about it.
#pragma once
#include <doctest/doctest.h>

#include <string>

#include "compiler/elaborate/elaborate.h"
#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "dsl/render.h"

struct Compiled {
  einc::SourceMap sources;
  einc::Diagnostics diagnostics;
  std::optional<einc::Graph> graph;
  std::string said;  // the diagnostics as text

  explicit Compiled(std::string text, einc::ElaborateOptions options = {}) {
    if (const auto file = sources.add("test.ein", std::move(text), diagnostics))
      graph = einc::elaborate(sources, *file, options, diagnostics);
    finish();
  }
  Compiled(const std::string& path, einc::ElaborateOptions options, bool /*from_file*/) {
    if (const auto file = sources.load(path, diagnostics)) graph = einc::elaborate(sources, *file, options, diagnostics);
    finish();
  }
  bool has(einc::Code code) const {
    for (const einc::Diagnostic& d : diagnostics.list())
      if (d.code == code) return true;
    return false;
  }
  // The one error, at this text of the source.
  bool only(einc::Code code, std::string_view at) const {
    return diagnostics.error_count() == 1 && diagnostics.list()[0].code == code && sources.text(diagnostics.list()[0].span) == at;
  }
  const einc::Node* param(std::string_view path) const {
    for (const einc::Node& node : graph->nodes)
      if (node.op == einc::Op::param && node.as<einc::ParamAttr>().path.str() == path) return &node;
    return nullptr;
  }
  const einc::Node& output(size_t i = 0) const { return (*graph)[graph->outputs.at(i).node]; }

 private:
  void finish() {
    said = einc::render_text(sources, diagnostics);
    if (graph)
      for (const std::string& problem : einc::verify(*graph)) {
        FAIL_CHECK(problem);
        break;
      }
  }
};
