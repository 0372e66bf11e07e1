// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/diff.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "compiler/cost/modules.h"
#include "compiler/report/json.h"
#include "runtime/base/ascii.h"

namespace einc {
namespace {

using Json = nlohmann::ordered_json;
using Numbers = std::vector<std::pair<std::string, Json>>;  // by path, in the report's order

// Numbers too large for a double are strings of digits.
bool is_amount(const Json& value) {
  if (value.is_number()) return true;
  if (!value.is_string()) return false;
  return is_digits(value.get<std::string>());
}

void collect(const Json& json, const std::string& path, Numbers& out) {
  for (const auto& [key, value] : json.items()) {
    const std::string at = path.empty() ? key : path + "." + key;
    if (key.ends_with("symbolic")) continue;  // formulas of digits alone would look like numbers
    if (key == "modules") {
      std::set<std::string> seen;  // of iterations of a loop the first speaks for all
      for (const Json& module : value)
        if (const std::string name = starred(module["path"].get<std::string>()); seen.insert(name).second)
          collect(module, at + "[" + name + "]", out);
    } else if (value.is_object()) {
      collect(value, at, out);
    } else if (is_amount(value)) {
      out.emplace_back(at, value);
    }
  }
}

Numbers numbers_of(const Report& report, const Graph& graph) {
  Numbers numbers;
  collect(Json::parse(render_json(report, graph)), "", numbers);
  return numbers;
}

const Json* find(const Numbers& numbers, const std::string& path) {
  for (const auto& [at, value] : numbers)
    if (at == path) return &value;
  return nullptr;
}

double number_of(const Json& value) { return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>(); }

std::string shown(const std::string& path, const Json* value) {
  if (value == nullptr) return "-";
  if (path.ends_with("_s") || path.ends_with(".seconds")) return human_seconds(number_of(*value));
  if (value->is_number_float()) return fmt::format("{:.4g}", value->get<double>());
  return grouped_digits(value->is_string() ? value->get<std::string>() : value->dump());
}

}  // namespace

Document compare_reports(const Report& report, const Graph& graph, const Report& other, const Graph& other_graph) {
  const Numbers mine = numbers_of(report, graph), theirs = numbers_of(other, other_graph);
  Document document;
  document.heading("Difference", fmt::format("{} and {}", report.model, other.model));
  Table table({Align::left, Align::right, Align::right, Align::right});
  table.add({"number", "this", "other", "other/this"});
  const auto add = [&](const std::string& path, const Json* a, const Json* b) {
    if (a && b && *a == *b) return;
    const bool comparable = a && b && number_of(*a) != 0;  // one program may have a module that the other lacks
    table.add({path, shown(path, a), shown(path, b), comparable ? fmt::format("{:.3f}", number_of(*b) / number_of(*a)) : "-"});
  };
  for (const auto& [path, value] : mine) add(path, &value, find(theirs, path));
  for (const auto& [path, value] : theirs)
    if (!find(mine, path)) add(path, nullptr, &value);
  if (table.row_count() > 1)
    document.table(table, true);
  else
    document.line("  no number differs");
  return document;
}

}  // namespace einc
