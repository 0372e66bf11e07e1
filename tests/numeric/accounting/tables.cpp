// SPDX-License-Identifier: Apache-2.0
#include "tables.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <span>
#include <sstream>
#include <type_traits>

#include "compiler/driver/commands.h"
#include "compiler/report/json.h"
#include "compiler/report/text.h"
#include "dsl/render.h"

namespace einc::accounting {

using nlohmann::json;

namespace {

const std::string kFolder = std::string(EINC_SOURCE_DIR) + "/tests/numeric/accounting/";

Report built(const Compilation& c, const std::string& dims, Detail detail) {
  ReportOptions options;
  options.detail = detail;
  options.given = dims_of(dims);
  return build_report(*c.graph, options);
}

// The number at a JSON pointer's steps.
template <typename Number>
Number number_at(const json& value, std::span<const std::string> steps) {
  if (steps.empty()) {
    if (!value.is_string()) return value.get<Number>();
    if constexpr (std::is_floating_point_v<Number>)
      return std::stod(value.get<std::string>());
    else
      return std::stoll(value.get<std::string>());  // digits where a double cannot hold it
  }
  const std::string& step = steps[0];
  const auto rest = steps.subspan(1);
  if (!value.is_array()) return number_at<Number>(value.at(step), rest);
  if (step.find_first_not_of("0123456789") == std::string::npos) return number_at<Number>(value.at(std::stoull(step)), rest);
  const size_t equals = step.find('=');
  Number sum = 0;
  int found = 0;
  for (const json& element : value) {
    const json name = element.value(equals == std::string::npos ? "name" : step.substr(0, equals), json());
    if (!name.is_string()) continue;
    if (equals == std::string::npos ? name != step : name.get<std::string>().find(step.substr(equals + 1)) == std::string::npos) continue;
    sum += number_at<Number>(element, rest);
    ++found;
  }
  REQUIRE_MESSAGE(found > 0, step);
  return sum;
}

template <typename Number>
Number sum_of(const json& report, const std::string& terms) {
  Number sum = 0;
  std::istringstream stream(terms);
  for (std::string term; std::getline(stream, term, '+');) {
    const size_t slash = term.find('/');
    const std::string factor = term.substr(0, slash);
    const int64_t times = factor.empty() ? 1 : factor == "-" ? -1 : std::stoll(factor);
    std::vector<std::string> steps;
    std::istringstream pointer(term.substr(slash + 1));
    for (std::string step; std::getline(pointer, step, '/');) steps.push_back(step);
    sum += static_cast<Number>(times) * number_at<Number>(report, steps);
  }
  return sum;
}

}  // namespace

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

Compilation compiled(const std::string& model, const std::string& dims) {
  PipelineOptions options;
  options.dims = dims_of(dims);
  const std::string path =
      model[0] == '@' ? std::string(EINC_SOURCE_DIR) + "/examples/" + model.substr(1) + ".ein" : kFolder + "models/" + model + ".ein";
  Compilation c = compile_file(path, options);
  REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
  return c;
}

json report_of(const std::string& model, const std::string& dims, Detail detail) {
  const Compilation c = compiled(model, dims);
  return json::parse(render_json(built(c, dims, detail), *c.graph));
}

std::string text_of(const std::string& model, const std::string& dims) {
  const Compilation c = compiled(model, dims);
  return render_text(built(c, dims, Detail::totals));
}

int64_t quantity_of(const json& report, const std::string& terms) { return sum_of<int64_t>(report, terms); }

bool gives(const json& report, const std::string& terms, const std::string& expected) {
  const size_t point = expected.find('.'), end = std::min(expected.find('e'), expected.size());
  if (point == std::string::npos) return quantity_of(report, terms) == std::stoll(expected);
  const double exponent = end == expected.size() ? 0 : std::stod(expected.substr(end + 1));
  const double half_unit = 0.5 * std::pow(10.0, exponent - static_cast<double>(end - point - 1));
  return std::abs(sum_of<double>(report, terms) - std::stod(expected)) <= half_unit * (1 + 1e-9);
}

json estimate_of(const std::string& arguments) {
  std::vector<std::string> words{"--report=json"};
  std::istringstream stream(arguments);
  for (std::string word; stream >> word;) words.push_back(word);
  // The command prints to standard output, which a file stands for meanwhile.
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  std::fflush(stdout);
  const int screen = dup(STDOUT_FILENO);
  dup2(fileno(file), STDOUT_FILENO);
  const ExitStatus status = estimate_command(words);
  std::fflush(stdout);
  dup2(screen, STDOUT_FILENO);
  close(screen);
  std::string text;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  REQUIRE_MESSAGE(status == ExitStatus::done, arguments);
  return json::parse(text);
}

}  // namespace einc::accounting
