// SPDX-License-Identifier: Apache-2.0
// The report as a page: one file without a network, for a screen, a phone or paper.
#pragma once
#include <span>
#include <string>

#include "compiler/report/report.h"

namespace einc {

struct ReportSource {
  std::string name, text;
};

// The summary, figures (where the time or the work goes, memory over the step, roofline), all tables of the text report, the program with
// a link from each kernel to its line, and the JSON report itself in the element `report`.
std::string render_html(const Report& report, const Graph& graph, std::span<const ReportSource> sources);

}  // namespace einc
