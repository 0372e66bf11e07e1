// Published and hand-computed numbers of resource accounting, one row of cases.tsv each: a model, its dims, a quantity of the
// JSON report and the exact integer it must be. elsewhere.tsv names the test that executes a row of another kind; excluded.tsv names the rows that a program cannot express, with the reason;
// open.tsv those that no test covers yet. ids.txt lists all rows, so that none is forgotten.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "compiler/driver/pipeline.h"
#include "compiler/ir/interpret.h"
#include "compiler/report/json.h"
#include "compiler/report/report.h"
#include "dsl/render.h"

using namespace einc;
using nlohmann::json;

namespace {

const std::string kFolder = std::string(EINC_SOURCE_DIR) + "/tests/numeric/accounting/";

std::vector<std::vector<std::string>> rows_of(const std::string& file) {
  std::ifstream in(kFolder + file);
  REQUIRE_MESSAGE(in.good(), file);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, '\t');) cells.push_back(cell);
    rows.push_back(cells);
  }
  return rows;
}

Bindings dims_of(const std::string& text) {
  Bindings dims;
  std::istringstream stream(text == "-" ? "" : text);
  for (std::string item; stream >> item;) dims[Name(item.substr(0, item.find('=')))] = std::stoll(item.substr(item.find('=') + 1));
  return dims;
}

json report_of(const std::string& model, const std::string& dims) {
  PipelineOptions options;
  options.dims = dims_of(dims);
  const std::string path = model[0] == '@' ? std::string(EINC_SOURCE_DIR) + "/examples/" + model.substr(1) + ".ein" : kFolder + "models/" + model + ".ein";
  const Compilation c = compile_file(path, options);
  REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
  ReportOptions report_options;
  report_options.given = options.dims;
  return json::parse(render_json(build_report(*c.graph, report_options), *c.graph));
}

// The sum of the quantities named by JSON pointers that + joins.
int64_t quantity_of(const json& report, const std::string& pointers) {
  int64_t sum = 0;
  std::istringstream stream(pointers);
  for (std::string pointer; std::getline(stream, pointer, '+');) {
    const json& value = report.at(json::json_pointer(pointer));
    sum += value.is_string() ? std::stoll(value.get<std::string>()) : value.get<int64_t>();  // digits where a double cannot hold it
  }
  return sum;
}

std::set<std::string> ids_of(const std::string& file) {
  std::set<std::string> ids;
  for (const auto& row : rows_of(file)) ids.insert(row.at(0));
  return ids;
}

}  // namespace

TEST_CASE("the report gives the published numbers") {
  std::map<std::pair<std::string, std::string>, json> reports;
  for (const auto& row : rows_of("cases.tsv")) {
    REQUIRE(row.size() == 5);
    const auto key = std::pair(row[1], row[2]);
    if (reports.count(key) == 0) reports[key] = report_of(row[1], row[2]);
    const bool equal = quantity_of(reports[key], row[3]) == std::stoll(row[4]);
    CHECK_MESSAGE(equal, row[0], " ", row[1], " ", row[2], " ", row[3], ": expected ", row[4]);
  }
}

TEST_CASE("C25 and C26: values of the notes' examples") {
  const auto run = [](const std::string& model, Tensor x) {
    const Compilation c = compile_file(kFolder + "models/" + model + ".ein", {});
    REQUIRE(c.graph.has_value());
    const InterpretResult result = interpret(*c.graph, {}, {{"x", std::move(x)}}, initial_params(*c.graph, {}, 0), {});
    std::map<std::string, std::vector<double>> values;
    for (const auto& [name, tensor] : result.outputs) values[name.str()] = tensor.reals;
    return values;
  };
  auto notes = run("notes_linear", Tensor::of_reals({3}, {1, 2, 3}, DType::f64));
  CHECK(notes["pred"] == std::vector<double>{6});
  CHECK(notes["loss"] == std::vector<double>{0.5});
  CHECK(notes["dw"] == std::vector<double>{1, 2, 3});
  CHECK(run("chain_rule", Tensor::of_reals({}, {3}, DType::f64))["dx"] == std::vector<double>{12});
}

TEST_CASE("every row is executed, excluded with a reason, or known to be open") {
  const std::set<std::string> all = ids_of("ids.txt"), excluded = ids_of("excluded.tsv"), open = ids_of("open.tsv");
  std::set<std::string> executed = ids_of("cases.tsv");
  for (const auto& row : rows_of("elsewhere.tsv")) {
    std::ifstream in(std::string(EINC_SOURCE_DIR) + "/" + row.at(1));
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    CHECK_MESSAGE(text.find(row[0]) != std::string::npos, row[1], " does not name ", row[0]);
    CHECK_MESSAGE(executed.insert(row[0]).second, row[0], " stands twice");
  }
  for (const auto& row : rows_of("excluded.tsv")) CHECK_MESSAGE(row.size() == 2, row.at(0), " needs a reason");
  for (const std::string& id : all) CHECK_MESSAGE(executed.count(id) + excluded.count(id) + open.count(id) == 1, id);
  CHECK(executed.size() + excluded.size() + open.size() == all.size());
  MESSAGE("accounting rows: ", executed.size(), " executed, ", excluded.size(), " excluded, ", open.size(), " open, ", all.size(), " in all");
}
