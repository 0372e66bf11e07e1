// SPDX-License-Identifier: Apache-2.0
// The HTML report in a browser: the numbers it shows are those of the JSON report, nothing is cut off at a phone's or a desktop's width,
// every link leads somewhere, and the console stays empty.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/report/format.h"
#include "tests/golden/page/browser.h"
#include "tests/support/run_einc.h"

namespace einc::test {
namespace {

using Json = nlohmann::json;

constexpr int kPhone = 390, kDesktop = 1280;

const std::string* browser() {
  static const std::optional<std::string> found = [] {
    std::optional<std::string> name = find_browser();
    if (!name) fmt::print("SKIPPED: no Chromium is installed\n");
    return name;
  }();
  return found ? &*found : nullptr;
}

const ShownPage::Row* find_row(const ShownPage& page, const std::string& heading, const std::string& label) {
  const auto found = std::ranges::find_if(page.rows, [&](const ShownPage::Row& row) {
    return row.heading.starts_with(heading) && !row.cells.empty() && row.cells.front() == label;
  });
  return found == page.rows.end() ? nullptr : &*found;
}

// A row's number; an amount of 0 may have no row, or "-" in its cell.
void check_number(const ShownPage& page, const std::string& heading, const std::string& label, const Json& wanted, size_t cell = 1) {
  CAPTURE(heading);
  CAPTURE(label);
  const std::string digits = wanted.is_string() ? wanted.get<std::string>() : wanted.dump();
  const ShownPage::Row* row = find_row(page, heading, label);
  if (row == nullptr) {
    CHECK(digits == "0");
    return;
  }
  REQUIRE(row->cells.size() > cell);
  const std::string& shown = row->cells[cell];
  CHECK(shown == (digits == "0" && (shown == "-" || shown.empty()) ? shown : grouped_digits(digits)));
}

void check_totals(const ShownPage& page, const Json& report) {
  check_number(page, "Parameters", "all", report["parameters"]["count"]);
  const Json& flops = report["flops"];
  size_t column = 1;
  for (const char* phase : {"forward", "backward", "optimizer"}) {
    check_number(page, "FLOPs of one step", phase, flops[phase]["total"]);
    for (const char* kind : {"contraction", "elementwise", "transcendental", "reduction", "other"})
      check_number(page, "FLOPs by kind", kind, flops[phase][kind], column);
    ++column;
  }
  check_number(page, "FLOPs of one step", "step", flops["step"]);
  for (const auto& [kind, executed] : flops["executed_by"].items()) check_number(page, "FLOPs by kind", kind, executed, column);
}

void check_memory(const ShownPage& page, const Json& report) {
  const std::pair<const char*, const char*> rows[] = {{"parameters", "parameters"},
                                                      {"gradients", "gradients"},
                                                      {"optimizer state", "optimizer_state"},
                                                      {"state", "state"},
                                                      {"inputs", "inputs"},
                                                      {"kept for the backward", "kept_for_backward"},
                                                      {"workspace", "workspace"},
                                                      {"fragmentation", "fragmentation"}};
  for (const auto& [label, field] : rows) check_number(page, "Memory", label, report["memory"]["at_peak"][field]);
  check_number(page, "Memory", "peak", report["memory"]["peak_training"]["bytes"]);
}

// The launches that the page ranks, by their names and lines.
void check_launches(const ShownPage& page, const Json& report) {
  size_t ranked = 0;
  for (const ShownPage::Row& row : page.rows) {
    if (!row.heading.starts_with("Where the work is by time") || row.cells.size() < 9 || row.cells[3] == "launch") continue;
    CAPTURE(row.cells[3]);
    ++ranked;
    CHECK(std::ranges::any_of(report["schedule"], [&](const Json& launch) {
      return row.cells[3] == launch["name"] && row.cells[4] == launch["count"].dump() && row.cells[5] == human_count(launch["flops"]) &&
             row.cells[6] == human_bytes(launch["bytes"]) && row.cells[7].starts_with(human_seconds(launch["time_s"]));
    }));
  }
  CHECK(ranked >= std::min<size_t>(5, report["schedule"].size()));
}

}  // namespace

TEST_CASE("the page shows the report's numbers at any width") {
  if (browser() == nullptr) return;
  for (const char* program : {"examples/mlp.ein", "examples/cnn.ein", "examples/nanogpt.ein"}) {
    CAPTURE(program);
    const Ran page = run_einc({program, "--device=h200", "--report=html"}), json = run_einc({program, "--device=h200", "--report=json"});
    REQUIRE(page.status == 0);
    REQUIRE(json.status == 0);
    const Json report = Json::parse(json.output);
    Json carried = report;
    carried["ops"] = Json::array();  // single ops are in the JSON report alone
    for (const int width : {kPhone, kDesktop}) {
      CAPTURE(width);
      const ShownPage shown = show_page(*browser(), page.output, width);
      CHECK(shown.console == "");
      CHECK(shown.width == width);
      CHECK(shown.content_width <= width);
      CHECK(shown.dead_links.empty());
      CHECK(shown.shapes > 20);
      const bool carries_the_report = Json::parse(shown.json) == carried;
      CHECK(carries_the_report);
      check_totals(shown, report);
      check_memory(shown, report);
      check_launches(shown, report);
    }
  }
}

TEST_CASE("what the browser tells of a page would show a fault") {
  if (browser() == nullptr) return;
  const std::string page =
      "<!DOCTYPE html><html><body><h2>Head</h2><table><tr><td>a</td><td>1</td></tr></table><a href=\"#gone\">x</a>"
      "<div style=\"width: 900px\">wide</div><script type=\"application/json\" id=\"report\">{\"n\": 1}</script>"
      "<script>console.error(\"planted\")</script></body></html>";
  const ShownPage shown = show_page(*browser(), page, kPhone);
  CHECK(shown.console.find("planted") != std::string::npos);
  CHECK(shown.content_width > kPhone);
  CHECK(shown.dead_links == std::vector<std::string>{"#gone"});
  CHECK(shown.json == "{\"n\": 1}");
  REQUIRE(shown.rows.size() == 1);
  CHECK(shown.rows[0].heading == "Head");
  CHECK(shown.rows[0].cells == std::vector<std::string>{"a", "1"});
}

}  // namespace einc::test
