// SPDX-License-Identifier: Apache-2.0
// The report of a small program: its numbers, its JSON against the schema, and what a reader sees.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "compiler/cost/estimate.h"
#include "compiler/precision/assign.h"
#include "compiler/report/json.h"
#include "compiler/report/text.h"
#include "tests/support/json_schema.h"
#include "tests/unit/cost/two_layer.h"

using namespace einc;
using einc::test::two_layer;
using Json = nlohmann::json;

namespace {

Report report_of(const Graph& graph, ReportOptions options = {}) {
  options.detail = Detail::ops;
  return build_report(graph, options);
}

Json schema() {
  std::ifstream file(EINC_SOURCE_DIR "/compiler/report/report.schema.json");
  std::stringstream text;
  text << file.rdbuf();
  return Json::parse(text.str());
}

void check_schema(const Json& json) {
  const Json rules = schema();
  for (const std::string& problem : test::SchemaCheck(rules)(json)) FAIL_CHECK(problem);
}

}  // namespace

TEST_CASE("two layers: numbers of the report") {
  const Graph g = assign_precision(two_layer().graph);
  const Report r = report_of(g);
  CHECK(r.forward.contraction.value == Rational(167772160));
  CHECK(r.backward.contraction.value == Rational(201326592));
  CHECK(r.parameter_count.value == Rational(256 * 256 + 256 * 64));
  CHECK(r.six_nd.tokens.value == Rational(1024 * 64));  // the mean runs over B and K
  CHECK(r.memory.saved_activations.value == Rational(2359296));
  CHECK(r.memory.peak_training.value->to_double() > 4 * 1024 * 256 + 8 * 81920);
  CHECK(*r.memory.peak_training.value == *r.memory.parameters.value + *r.memory.gradients.value + *r.memory.inputs.value +
                                             *r.memory.saved_planned.value + *r.memory.workspace.value);
  Rational ops(0);
  for (const OpReport& op : r.ops) ops = ops + *op.flops.value;
  CHECK(ops == *r.step.value);
}

TEST_CASE("the JSON keeps its schema, with and without values") {
  const Graph g = assign_precision(two_layer().graph);
  ReportOptions options;
  options.device = *find_device("h100-sxm");
  options.training = TrainingRequest{8, 1e9, 0.5};
  Report full = report_of(g, options);
  full.fit = FitReport{"B", {12, Rational(100), false}};
  const Json json = Json::parse(render_json(full, g));
  check_schema(json);
  CHECK(json["flops"]["forward"]["contraction"] == 167772160);
  CHECK(json["flops"]["forward"]["symbolic"]["contraction"] == "2*B*D^2 + 2*B*D*K");
  CHECK(json["memory"]["peak_training"]["valid_for"] == "dims");
  CHECK(json["device"]["step_time_s"].get<double>() > 0);
  CHECK(json["training"]["days"].get<double>() > 0);

  Graph open = g;
  open.dims = DimTable();
  for (const char* name : {"B", "D", "K"}) open.dims.declare_free(name);
  const Json free = Json::parse(render_json(report_of(open), open));
  check_schema(free);
  CHECK(free["flops"]["step"].is_null());
  CHECK(free["flops"]["forward"]["symbolic"]["contraction"] == "2*B*D^2 + 2*B*D*K");
  CHECK(free["memory"]["peak_training"]["bytes"].is_null());
  CHECK(free["memory"]["peak_training"]["symbolic"].is_null());
  CHECK(free["free_dims"] == Json::array({"B", "D", "K"}));
}

TEST_CASE("counts that no double holds are strings of digits") {
  Graph g;
  Builder b(g);
  g.dims.declare_default("n", (int64_t{1} << 40) + 1);
  const Poly n = Poly::dim("n");
  const NodeId x = b.input("x", Type{DType::f32, {{"n", n}}});
  const NodeId wide = b.map(MapFn::add, std::array{x, x}, std::array{AxisList{0}, AxisList{1}}, {{"n", n}, {"m", n}}, DType::f32);
  g.outputs.push_back({"y", b.reduce(ReduceFn::sum, wide, {0, 1})});
  const Json json = Json::parse(render_json(report_of(g), g));
  check_schema(json);
  CHECK(json["dims"]["n"] == 1099511627777);
  CHECK(json["flops"]["forward"]["elementwise"] == "1208925819616828197961729");
}

TEST_CASE("the text report") {
  const Graph g = assign_precision(two_layer().graph);
  ReportOptions options;
  options.device = *find_device("a100-80gb");
  const Report r = report_of(g, options);
  const std::string text = render_text(r, {80, Paint::off});
  INFO(text);
  for (const char* part :
       {"two_layer.ein", "167,772,160", "FLOPs of one step", "Memory", "Where the work is", "On a100-80gb", "per example"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
  for (const char* part : {"6 N D", "per token"}) CHECK_MESSAGE(text.find(part) == std::string::npos, part);  // its loss has no tokens
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(render_text(r, {80, Paint::on}).find("\x1b[1m") != std::string::npos);
  CHECK(explain_memory(r, g).find("stored") != std::string::npos);
}

TEST_CASE("an estimate is rounded for readers, memory in the report's units") {
  const auto text_of = [](double parameters, double tokens, double devices) {
    EstimateRequest request;
    request.device = *find_device("h100-sxm");
    request.parameters = parameters;
    request.tokens = tokens;
    request.devices = devices;
    request.mfu = 0.5;
    request.batch_tokens = 4e6;
    return render_text(estimate(request), TextStyle{100, Paint::off});
  };
  const std::string large = text_of(7e9, 15e12, 1024);
  INFO(large);
  // 6 * 7e9 * 15e12 = 6.3e23; 1024 * 989.4e12 / 2 * 86400 = 4.3768e22 a day; 14.394 days of 24 * 1024 hours.
  for (const char* part :
       {"6 N D = 6 x 7B x 15T = 6.3e23 FLOPs\n", "  7,292 petaFLOP/s-days\n", "1024 x h100-sxm at MFU 0.5: 4.38e22 FLOPs a day\n",
        "  14.4 days, 353,750 device-hours\n", "  3,750,000 steps of 4M tokens\n", "replicated  104.3 GiB\n",
        "the weights alone: 13.04 GiB in 16 bit, 26.08 GiB in f32"})
    CHECK(large.find(part) != std::string::npos);
  CHECK(large.find("GB") == std::string::npos);
  const std::string small = text_of(124'439'808, 999.9e6, 1);
  INFO(small);
  CHECK(small.find("6 x 124M x 1B = 7.47e17 FLOPs") != std::string::npos);
  CHECK(small.find("  25.15 min, 0.419 device-hours") != std::string::npos);
}

TEST_CASE("an estimate for every optimizer is one short table") {
  EstimateRequest request;
  request.device = *find_device("h100-sxm");
  const std::string all = render_text(estimate(request), TextStyle{100, Paint::off});
  CHECK(std::count(all.begin(), all.end(), '\n') <= 8);
  CHECK(all.find("momentum, adagrad, rmsprop") != std::string::npos);
  CHECK(all.find("adam, adamw") != std::string::npos);
  request.optimizer = "adamw";
  const std::string one = render_text(estimate(request), TextStyle{100, Paint::off});
  CHECK(one.find("momentum") == std::string::npos);
  CHECK(one.find("16-bit weights and gradients, f32 masters") != std::string::npos);
}
