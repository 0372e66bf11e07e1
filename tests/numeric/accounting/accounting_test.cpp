// SPDX-License-Identifier: Apache-2.0
// Published and hand-computed numbers of resource accounting, one row of cases.tsv each: a model, its dims, a quantity of the
// JSON report, the number it must be and, where one is known, a wrong number that the report must not hold at all. estimates.tsv
// holds the same for `einc estimate`. elsewhere.tsv names the test that executes a row of another kind; excluded.tsv names the rows that a
// program cannot express, with the reason. ids.txt lists all rows, so that none is forgotten.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "compiler/ir/interpret.h"
#include "compiler/report/json.h"
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
  std::map<std::tuple<std::string, std::string, Detail>, json> reports;
  for (const auto& row : rows_of("cases.tsv")) {
    REQUIRE((row.size() == 5 || row.size() == 6));
    const Detail detail = row[3].find("/ops/") == std::string::npos ? Detail::totals : Detail::ops;
    const auto key = std::tuple(row[1], row[2], detail);
    if (reports.count(key) == 0) {
      reports[key] = report_of(row[1], row[2], detail);
      reports[key].erase("schedule");  // its rows are single launches: what one iteration does is no total that is wrong
    }
    CHECK_MESSAGE(gives(reports[key], row[3], row[4]), row[0], " ", row[1], " ", row[2], " ", row[3], ": expected ", row[4]);
    if (row.size() == 6)
      CHECK_MESSAGE(!holds(reports[key], row[5]), row[0], " ", row[1], ": the wrong number ", row[5], " stands in the report");
  }
}

TEST_CASE("einc estimate gives the published numbers") {
  std::map<std::string, json> estimates;
  for (const auto& row : rows_of("estimates.tsv")) {
    REQUIRE(row.size() == 4);
    if (estimates.count(row[1]) == 0) estimates[row[1]] = estimate_of(row[1]);
    CHECK_MESSAGE(gives(estimates[row[1]], row[2], row[3]), row[0], " ", row[1], " ", row[2], ": expected ", row[3]);
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

TEST_CASE("M17: what rounding to a format keeps of 1e-8") {
  const Compilation c = compiled("rounding", "-");
  const auto rounded = [&](double x) {
    InterpretOptions options;
    options.arithmetic = Arithmetic::stored;
    const InterpretResult result = interpret(*c.graph, {}, {{"x", Tensor::of_reals({1}, {x}, DType::f64)}}, {}, {}, options);
    std::map<std::string, double> values;
    for (const auto& [name, tensor] : result.outputs) values[name.str()] = tensor.reals.at(0);
    return values;
  };
  CHECK(rounded(1e-8)["half"] == 0);  // below half of the smallest subnormal
  CHECK(rounded(3.1e-8)["half"] == 0x1p-24);
  CHECK(rounded(1e-8)["brain"] == 1.0011717677116394e-08);
  for (const auto& [dtype, largest] : {std::pair(DType::f32, 3.4028234663852886e38),
                                       {DType::f16, 65504.0},
                                       {DType::bf16, 3.3895313892515355e38},
                                       {DType::f8e4m3, 448.0},
                                       {DType::f8e5m2, 57344.0}})
    CHECK(info(dtype).largest == largest);
}

TEST_CASE("R03, R09: products of few rows are bound by memory on every device") {
  struct Row {
    const char *model, *dims;
    double intensity;
  };
  for (const Row& row : {Row{"matvec", "-", 0.99951}, Row{"own_weights", "batch=1", 1.9995}, Row{"own_weights", "batch=4096", 1.9995}}) {
    const Compilation c = compiled(row.model, row.dims);
    for (const Device& device : known_devices()) {
      ReportOptions options;
      options.given = dims_of(row.dims);
      options.detail = Detail::ops;
      options.device = device;
      const json report = json::parse(render_json(build_report(*c.graph, options), *c.graph));
      const auto product =
          std::find_if(report["ops"].begin(), report["ops"].end(), [](const json& op) { return op["kind"] == "contract"; });
      REQUIRE(product != report["ops"].end());
      CHECK((*product)["intensity"].get<double>() == doctest::Approx(row.intensity).epsilon(1e-5));
      CHECK_MESSAGE((*product)["bound"] == "memory", device.name);
    }
  }
}

TEST_CASE("every row is executed or excluded with a reason") {
  const std::set<std::string> all = ids_of("ids.txt"), excluded = ids_of("excluded.tsv");
  std::set<std::string> executed = ids_of("cases.tsv");
  executed.merge(ids_of("estimates.tsv"));
  for (const auto& row : rows_of("elsewhere.tsv")) {
    std::ifstream in(std::string(EINC_SOURCE_DIR) + "/" + row.at(1));
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    CHECK_MESSAGE(text.find(row[0]) != std::string::npos, row[1], " does not name ", row[0]);
    CHECK_MESSAGE(executed.insert(row[0]).second, row[0], " stands twice");
  }
  for (const auto& row : rows_of("excluded.tsv")) CHECK_MESSAGE(row.size() == 2, row.at(0), " needs a reason");
  for (const std::string& id : all) CHECK_MESSAGE(executed.count(id) + excluded.count(id) == 1, id);
  CHECK(executed.size() + excluded.size() == all.size());
  MESSAGE("accounting rows: ", executed.size(), " executed, ", excluded.size(), " excluded, ", all.size(), " in all");
}
