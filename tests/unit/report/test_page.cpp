// SPDX-License-Identifier: Apache-2.0
// The report as a page, as Markdown and as paths with values.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "compiler/pipeline/pipeline.h"
#include "compiler/report/document.h"
#include "compiler/report/html.h"
#include "compiler/report/json.h"
#include "compiler/report/treemap.h"
#include "dsl/render.h"

using namespace einc;
using Json = nlohmann::json;

namespace {

struct Built {
  Compilation program;
  Report report;
};

Built built(const std::string& name, const std::string& text, const char* device) {
  Built b{compile_text(name, text, {}), {}};
  REQUIRE_MESSAGE(b.program.graph.has_value(), render_text(b.program.sources, b.program.diagnostics));
  ReportOptions options;
  if (device) options.device = *find_device(device);
  b.report = build_report(*b.program.graph, options);
  return b;
}

const std::string kModel =
    "dim batch = 8, d = 32\ninput x: f32[batch d]\nfn layer(h: [... c]) {\n  param w: [c k=64] ~ normal(std = 0.1)\n"
    "  return gelu(einsum(h, w, \"... c, c k -> ... k\"))\n}\nloss = mean(layer(x) as first)\nminimize loss using adamw(lr = 1e-3)\n";

size_t count(const std::string& text, std::string_view what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

std::string page_of(const Built& b, const std::string& name, const std::string& text) {
  const ReportSource source{name, text};
  return render_html(b.report, *b.program.graph, std::span(&source, 1));
}

// What a browser finds in the element `report`.
Json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"report\">";
  const size_t begin = page.find(open) + open.size();
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

}  // namespace

TEST_CASE("a page holds the figures, the tables, the program and the numbers") {
  const Built b = built("model.ein", kModel, "cpu");
  const std::string page = page_of(b, "model.ein", kModel);
  CHECK(page.rfind("<!DOCTYPE html>", 0) == 0);
  for (const char* part : {"Where the time goes", "Memory over the step", "Roofline", "Parameters", "id=\"f0-5\"", "first "})
    CHECK_MESSAGE(page.find(part) != std::string::npos, part);
  CHECK(count(page, "<svg ") == 3);
  for (const char* tag : {"svg", "section", "table", "a", "g", "title"})
    CHECK_MESSAGE(
        count(page, fmt::format("<{}", tag) + " ") + count(page, fmt::format("<{}>", tag)) == count(page, fmt::format("</{}>", tag)), tag);
  // No file and no address besides its own places.
  for (const char* foreign : {"http:", "https:", "<link", "src=", "url("}) CHECK_MESSAGE(page.find(foreign) == std::string::npos, foreign);
  for (size_t at = page.find("href=\"#"); at != std::string::npos; at = page.find("href=\"#", at + 1)) {
    const std::string place = page.substr(at + 7, page.find('"', at + 7) - at - 7);
    CHECK_MESSAGE(page.find("id=\"" + place + "\"") != std::string::npos, place);
  }
  CHECK(data_of(page) == Json::parse(render_json(b.report, *b.program.graph)));
  CHECK(count(page, "nan") == 0);
}

TEST_CASE("without values a page has the formulas, without a device the work") {
  const std::string free = "input x: f32[batch d=3]\noutput y = x * 2\n";
  const std::string open = page_of(built("free.ein", "dim batch\n" + free, nullptr), "free.ein", "dim batch\n" + free);
  CHECK(count(open, "<svg ") == 0);
  CHECK(open.find("need a value for every dim") != std::string::npos);
  const std::string bare = page_of(built("model.ein", kModel, nullptr), "model.ein", kModel);
  CHECK(bare.find("Where the work is, by FLOPs") != std::string::npos);
  CHECK(bare.find("Roofline") == std::string::npos);
}

TEST_CASE("what a page shows of a program stays text") {
  // A comment and a file's name are all that may hold such signs; JSON holds the name.
  const std::string text = "# </script><script>alert(1)</script> & \"quotes\"\ninput x: f32[n=3]\noutput y = x * 2\n";
  const std::string name = "<img src=x onerror=alert(1)>.ein";
  const Built b = built(name, text, "cpu");
  const std::string page = page_of(b, name, text);
  CHECK(count(page, "<script") == 1);
  CHECK(count(page, "</script>") == 1);
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find("&lt;/script&gt;&lt;script&gt;alert(1)") != std::string::npos);
  CHECK(data_of(page)["model"] == b.report.model);
}

TEST_CASE("Markdown has the tables of the text, with signs that mean nothing in it") {
  const Built b = built("model.ein", kModel, "cpu");
  const std::string text = report_document(b.report, 100).markdown();
  CHECK(text.rfind("model.ein: 2,048 parameters", 0) == 0);
  CHECK(text.find("\n## Parameters\n") != std::string::npos);
  CHECK(text.find("| share |  |  | launch | times |") != std::string::npos);
  CHECK(text.find("64\\*d") != std::string::npos);
  // Each row of a table has the cells of its head.
  size_t cells = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t bars = line.rfind("|", 0) == 0 ? count(line, "|") - count(line, "\\|") : 0;
    CHECK((bars == 0 || cells == 0 || bars == cells));
    cells = bars;
  }
}

TEST_CASE("paths and values are the JSON report's") {
  const Built b = built("a,\"b\".ein", kModel, "cpu");
  const Json json = Json::parse(render_json(b.report, *b.program.graph));
  const std::string csv = render_csv(b.report, *b.program.graph);
  CHECK(csv.rfind("path,value\nmodel,\"a,\"\"b\"\".ein\"\n", 0) == 0);
  CHECK(csv.find(fmt::format("\nflops.forward.contraction,{}\n", json["flops"]["forward"]["contraction"].dump())) != std::string::npos);
  CHECK(csv.find("\nschedule.0.count,1\n") != std::string::npos);
  size_t leaves = 0;
  const auto walk = [&](const auto& self, const Json& value) -> void {
    if (!value.is_structured()) return void(++leaves);
    for (const auto& part : value) self(self, part);
  };
  walk(walk, json);
  CHECK(count(csv, "\n") == leaves + 1);
}

TEST_CASE("a treemap fills its whole in proportion") {
  for (const std::vector<double>& weights :
       {std::vector<double>{1}, {3, 0, 1}, {6, 6, 4, 3, 2, 2, 1}, {1e-9, 1, 5}, std::vector<double>(200, 1.0)}) {
    const Rectangle whole{10, 20, 600, 400};
    const std::vector<Rectangle> parts = treemap(weights, whole);
    REQUIRE(parts.size() == weights.size());
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Rectangle& r = parts[i];
      CHECK(r.width * r.height == doctest::Approx(weights[i] / total * 600 * 400));
      if (weights[i] <= 0) continue;
      CHECK(r.x >= 10 - 1e-9);
      CHECK(r.y >= 20 - 1e-9);
      CHECK(r.x + r.width <= 610 + 1e-3);
      CHECK(r.y + r.height <= 420 + 1e-3);
      for (size_t j = 0; j < i; ++j) {
        const Rectangle& o = parts[j];
        const double wide = std::min(r.x + r.width, o.x + o.width) - std::max(r.x, o.x),
                     high = std::min(r.y + r.height, o.y + o.height) - std::max(r.y, o.y);
        CHECK((wide < 1e-3 || high < 1e-3));
      }
    }
  }
  // The paper's example: sides of 6 x 4, and its first row.
  const std::vector<Rectangle> parts = treemap(std::vector<double>{6, 6, 4, 3, 2, 2, 1}, {0, 0, 6, 4});
  CHECK(parts[0].width == doctest::Approx(3));
  CHECK(parts[0].height == doctest::Approx(2));
  CHECK(parts[1].y == doctest::Approx(2));
}
