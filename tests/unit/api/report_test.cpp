// SPDX-License-Identifier: Apache-2.0
// The report as a struct says what --report=json says.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "compiler/codegen/llvm/native_code.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/report/json.h"
#include "tests/unit/api/programs.h"

using namespace einc;
using nlohmann::json;

namespace {

std::string digits(const json& number) { return number.is_string() ? number.get<std::string>() : number.dump(); }

std::string text(const json& string) { return string.get<std::string>(); }

}  // namespace

TEST_CASE("the report is the one of the command line") {
  const std::string path = std::string(EINC_SOURCE_DIR) + "/examples/mlp.ein";
  const cost::Report report = report_file(path);
  const Compilation c = compile_file(path, PipelineOptions{});
  PipelineOptions inference_options;
  inference_options.roots = Roots::inference;
  const Graph inference = run_passes(*c.elaborated, inference_options);
  ReportOptions options;
  options.detail = Detail::ops;
  options.inference = [&]() -> const Graph& { return inference; };
  options.plan = plan_for_processor(native_processor());
  const json expected = json::parse(render_json(build_report(*c.graph, options), *c.graph));

  CHECK(report.model == text(expected["model"]));
  CHECK(report.precision == text(expected["precision"]));
  CHECK(report.parameter_count.digits == digits(expected["parameters"]["count"]));
  CHECK(report.parameter_count.symbolic == text(expected["parameters"]["symbolic"]));
  CHECK(report.step.digits == digits(expected["flops"]["step"]));
  CHECK(report.step.symbolic == text(expected["flops"]["step_symbolic"]));
  CHECK(report.step.value == std::stoll(report.step.digits));
  CHECK(report.forward.contraction.digits == digits(expected["flops"]["forward"]["contraction"]));
  CHECK(report.backward.elementwise.digits == digits(expected["flops"]["backward"]["elementwise"]));
  CHECK(report.optimizer.total.digits == digits(expected["flops"]["optimizer"]["total"]));
  CHECK(report.six_nd.tokens.digits == digits(expected["six_nd"]["tokens"]));
  const std::pair<const char*, const cost::Amount*> rows[] = {{"parameters", &report.memory.parameters},
                                                              {"gradients", &report.memory.gradients},
                                                              {"optimizer_state", &report.memory.optimizer_state},
                                                              {"saved_activations", &report.memory.saved_activations},
                                                              {"inputs", &report.memory.inputs},
                                                              {"workspace", &report.memory.workspace},
                                                              {"peak_training", &report.memory.peak_training},
                                                              {"peak_inference", &report.memory.peak_inference}};
  for (const auto& [key, amount] : rows) CHECK_MESSAGE(amount->digits == digits(expected["memory"][key]["bytes"]), key);
  REQUIRE(report.memory.at_peak);
  const cost::PeakRows& at = *report.memory.at_peak;
  CHECK(at.parameters + at.gradients + at.optimizer_state + at.state + at.inputs + at.kept_for_backward + at.workspace + at.fragmentation ==
        report.memory.peak_training.value);
  CHECK(at.launch == text(expected["memory"]["peak_launch"]));
  REQUIRE(report.schedule.size() == expected["schedule"].size());
  int64_t executed = 0;
  for (size_t i = 0; i < report.schedule.size(); ++i) {
    executed += report.schedule[i].count * report.schedule[i].flops;
    CHECK(report.schedule[i].name == text(expected["schedule"][i]["name"]));
    CHECK(report.schedule[i].bytes == expected["schedule"][i]["bytes"]);
    CHECK(report.schedule[i].line == expected["schedule"][i]["source"]["line"]);
  }
  CHECK(executed == report.executed.value);
  CHECK(report.per_example.symbolic == text(expected["flops"]["per_example_symbolic"]));
  REQUIRE(report.ops.size() == expected["ops"].size());
  for (size_t i = 0; i < report.ops.size(); ++i) {
    CHECK(report.ops[i].id == expected["ops"][i]["id"]);
    CHECK(report.ops[i].kind == text(expected["ops"][i]["kind"]));
    CHECK(report.ops[i].flops.digits == digits(expected["ops"][i]["flops"]));
    CHECK(report.ops[i].line == expected["ops"][i]["source"]["line"]);
  }
  REQUIRE(report.parameters.size() == expected["parameters"]["tensors"].size());
  CHECK(report.parameters[0].axes == expected["parameters"]["tensors"][0]["axes"].get<std::vector<std::string>>());
}

TEST_CASE("without values the report is formulas") {
  const cost::Report report = report_text(einc::test::kLinear);
  CHECK(report.free_dims == std::vector<std::string>{"batch"});
  CHECK(!report.step.value);
  CHECK(report.step.digits.empty());
  CHECK(report.forward.contraction.symbolic == "2*batch*features");
}
