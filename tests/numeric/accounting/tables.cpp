#include "tables.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "compiler/report/json.h"
#include "compiler/report/report.h"
#include "compiler/report/text.h"
#include "dsl/render.h"

namespace einc::accounting {

using nlohmann::json;

namespace {

const std::string kFolder = std::string(EINC_SOURCE_DIR) + "/tests/numeric/accounting/";

Report built(const Compilation& c, const std::string& dims) {
  ReportOptions options;
  options.given = dims_of(dims);
  return build_report(*c.graph, options);
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
  const std::string path = model[0] == '@' ? std::string(EINC_SOURCE_DIR) + "/examples/" + model.substr(1) + ".ein" : kFolder + "models/" + model + ".ein";
  Compilation c = compile_file(path, options);
  REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
  return c;
}

json report_of(const std::string& model, const std::string& dims) {
  const Compilation c = compiled(model, dims);
  return json::parse(render_json(built(c, dims), *c.graph));
}

std::string text_of(const std::string& model, const std::string& dims) {
  const Compilation c = compiled(model, dims);
  return render_text(built(c, dims), *c.graph);
}

int64_t quantity_of(const json& report, const std::string& pointers) {
  int64_t sum = 0;
  std::istringstream stream(pointers);
  for (std::string pointer; std::getline(stream, pointer, '+');) {
    const int64_t sign = pointer[0] == '-' ? -1 : 1;
    const json& value = report.at(json::json_pointer(sign < 0 ? pointer.substr(1) : pointer));
    sum += sign * (value.is_string() ? std::stoll(value.get<std::string>()) : value.get<int64_t>());  // digits where a double cannot hold it
  }
  return sum;
}

}  // namespace einc::accounting
