// Published and hand-computed numbers of resource accounting, one row of cases.tsv each: a model, its dims, a quantity of the
// JSON report, the exact integer it must be and, where one is known, a wrong number that the report must not hold at all. elsewhere.tsv
// names the test that executes a row of another kind; excluded.tsv names the rows that a program cannot express, with the reason; open.tsv
// those that no test covers yet. ids.txt lists all rows, so that none is forgotten.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/ir/interpret.h"
#include "tables.h"

using namespace einc;
using namespace einc::accounting;
using nlohmann::json;

namespace {

std::set<std::string> ids_of(const std::string& file) {
  std::set<std::string> ids;
  for (const auto& row : rows_of(file)) ids.insert(row.at(0));
  return ids;
}

// Whether a number, as a number or as a string of digits, stands anywhere in the document.
bool holds(const json& value, const std::string& number) {
  if (value.is_structured()) return std::any_of(value.begin(), value.end(), [&](const json& part) { return holds(part, number); });
  return (value.is_string() ? value.get<std::string>() : value.dump()) == number;
}

}  // namespace

TEST_CASE("the report gives the published numbers") {
  std::map<std::pair<std::string, std::string>, json> reports;
  for (const auto& row : rows_of("cases.tsv")) {
    REQUIRE((row.size() == 5 || row.size() == 6));
    const auto key = std::pair(row[1], row[2]);
    if (reports.count(key) == 0) reports[key] = report_of(row[1], row[2]);
    const bool equal = quantity_of(reports[key], row[3]) == std::stoll(row[4]);
    CHECK_MESSAGE(equal, row[0], " ", row[1], " ", row[2], " ", row[3], ": expected ", row[4], ", found ",
                  quantity_of(reports[key], row[3]));
    if (row.size() == 6)
      CHECK_MESSAGE(!holds(reports[key], row[5]), row[0], " ", row[1], ": the wrong number ", row[5], " stands in the report");
  }
}

TEST_CASE("C25, C26, S34, S35: values of the notes' examples") {
  const auto run = [](const std::string& model, Tensor x) {
    const Compilation c = compiled(model, "-");
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
  MESSAGE("accounting rows: ", executed.size(), " executed, ", excluded.size(), " excluded, ", open.size(), " open, ", all.size(),
          " in all");
}
