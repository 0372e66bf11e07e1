// SPDX-License-Identifier: Apache-2.0
// The report for a terminal: what dominates first, aligned tables, exact integers beside human units and formulas.
#pragma once
#include <string>

#include "compiler/report/report.h"

namespace einc {

enum class Paint : uint8_t { off, on };
struct TextStyle {
  int width = 100;
  Paint paint = Paint::off;
};

// Two lines: parameters, FLOPs and peak memory of a step; its time on the report's device and what bounds it.
std::string render_summary(const Report& report);
// The summary and all that stands behind it.
std::string render_text(const Report& report, TextStyle style = {});
std::string render_text(const Estimate& estimate, TextStyle style = {});
// --explain=memory: what is stored, what is a view, which copies are made and why.
std::string explain_memory(const Report& report, const Graph& graph, TextStyle style = {});

}  // namespace einc
