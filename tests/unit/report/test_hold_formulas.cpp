// SPDX-License-Identifier: Apache-2.0
// A formula without `valid_for` gives the number of every other number of iterations, small ones included.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "compiler/pipeline/pipeline.h"
#include "compiler/report/json.h"
#include "compiler/symbolic/poly.h"

using namespace einc;

namespace {

using Numbers = nlohmann::json;

// One weight read in every step: each but the last adds its gradient to the others'. And layers whose first and last differ.
constexpr const char* kShared = R"(
dim batch = 3, seq = 5, hidden = 6
input x: f32[batch hidden]
param w: [hidden k=hidden] ~ xavier(fan_in = hidden)
h = x
for t in seq { z: [batch hidden] = einsum(h, w, "batch hidden, hidden k -> batch k")
  h = tanh(x + z) }
loss = mean(h^2)
minimize loss using sgd(lr = 0.1)
)";
constexpr const char* kLayers = R"(
dim batch = 3, layers = 2, hidden = 6
input x: f32[batch hidden]
for i in layers {
  param w: [hidden k=hidden] ~ xavier(fan_in = hidden)
  z: [batch hidden] = einsum(x, w, "batch hidden, hidden k -> batch k")
  x = tanh(z)
}
loss = mean(x^2)
minimize loss using sgd(lr = 0.1)
)";

Numbers report_of(const Compilation& program, const PipelineOptions& options) {
  REQUIRE(program.graph);
  ReportOptions wanted;
  wanted.given = options.dims;
  wanted.compile = [&](const Bindings& dims) { return compile_again(program, options, dims).graph; };
  const Report report = build_report(*program.graph, wanted);
  return Numbers::parse(render_json(report, *program.graph));
}

struct Told {
  std::string formula;
  Numbers number;
  bool holds = true;
};

std::map<std::string, Told> sums_of(const Numbers& report) {
  std::map<std::string, Told> sums;
  const auto add = [&](const std::string& key, const Numbers& formula, const Numbers& number, const Numbers& marked) {
    if (formula.is_string()) sums[key] = {formula, number, !marked.contains("valid_for")};
  };
  for (const char* phase : {"forward", "backward", "optimizer"}) {
    const Numbers& flops = report["flops"][phase];
    for (const auto& [kind, formula] : flops["symbolic"].items()) add(std::string(phase) + " " + kind, formula, flops[kind], flops);
  }
  add("step", report["flops"]["step_symbolic"], report["flops"]["step"], report["flops"]);
  add("per token", report["flops"]["per_token_symbolic"], report["flops"]["per_token"], report["flops"]);
  for (const char* row : {"parameters", "gradients", "optimizer_state", "inputs", "saved_activations"})
    add(row, report["memory"][row]["symbolic"], report["memory"][row]["bytes"], report["memory"][row]);
  for (const Numbers& m : report["modules"])
    for (const auto& [kind, formula] : m["symbolic"].items()) add(m["path"].get<std::string>() + " " + kind, formula, m[kind], m);
  return sums;
}

Bindings dims_of(const Numbers& report) {
  Bindings dims;
  for (const auto& [name, value] : report["dims"].items()) dims[Name(name)] = value.get<int64_t>();
  return dims;
}

void check_formulas(const std::function<Compilation(const PipelineOptions&)>& open, const std::vector<const char*>& counted) {
  std::vector<Numbers> reports;
  for (const int64_t count : {1, 2, 3, 5, 7}) {
    PipelineOptions options;
    for (const char* dim : counted) options.dims[Name(dim)] = count;
    reports.push_back(report_of(open(options), options));
  }
  size_t compared = 0;
  for (const Numbers& from : reports)
    for (const auto& [key, told] : sums_of(from)) {
      if (!told.holds) continue;
      const auto formula = parse_poly(told.formula);
      REQUIRE_MESSAGE(formula, told.formula);
      for (const Numbers& at : reports) {
        const auto sums = sums_of(at);
        const auto there = sums.find(key);
        if (there == sums.end() || !there->second.number.is_number_integer()) continue;
        const std::optional<Rational> value = formula->evaluate(dims_of(at));
        CHECK_MESSAGE(value == Rational(there->second.number.get<int64_t>()), key, ": ", told.formula, " of ", from["dims"].dump(), " at ",
                      at["dims"].dump());
        ++compared;
      }
    }
  CHECK(compared > 300);
}

}  // namespace

TEST_CASE("formulas hold at other numbers of iterations") {
  check_formulas([](const PipelineOptions& options) { return compile_text("shared.ein", kShared, options); }, {"seq"});
  check_formulas([](const PipelineOptions& options) { return compile_text("layers.ein", kLayers, options); }, {"layers"});
  const std::pair<const char*, std::vector<const char*>> models[] = {
      {"examples/gpt2.ein", {"layers"}}, {"tests/zoo/models/lstm.ein", {"seq", "layers"}}, {"tests/zoo/models/bert.ein", {"layers"}}};
  for (const auto& [path, counted] : models)
    check_formulas([&](const PipelineOptions& options) { return compile_file(std::string(EINC_SOURCE_DIR "/") + path, options); }, counted);
}

TEST_CASE("a dim that chooses a branch: formulas hold here, but for one that a loop around it counts") {
  const std::string body = "x: f32[batch hidden]\ny = x * 2\n", end = "output z = y\n";
  const auto report = [](const std::string& program) {
    return report_of(compile_text("chosen.ein", "dim batch = 3, layers = 4, hidden = 6\ninput " + program, {}), {});
  };
  CHECK(report(body + "if batch > 8 { y = y * x }\n" + end)["flops"]["forward"].contains("valid_for"));
  CHECK(report(body + "if training { y = y * x }\n" + end)["flops"]["forward"]["symbolic"]["total"] == "2*batch*hidden");
  const Numbers looped = report(body + "for i in layers { if i == layers - 1 { y = y * x * x } else { y = y + x } }\n" + end);
  CHECK(looped["flops"]["forward"]["symbolic"]["total"] == "batch*hidden*layers + 2*batch*hidden");
  CHECK(!looped["flops"]["forward"].contains("valid_for"));
}

TEST_CASE("the formula of a weight that steps share counts an addition for each but one") {
  PipelineOptions options;
  const Numbers report = report_of(compile_text("shared.ein", kShared, options), options);
  CHECK(report["flops"]["backward"]["symbolic"]["elementwise"] == "3*batch*hidden*seq + hidden^2*seq - hidden^2");
  CHECK(!report["flops"]["backward"].contains("valid_for"));
}
