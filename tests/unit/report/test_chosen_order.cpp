// SPDX-License-Identifier: Apache-2.0
// Numbers behind which stands a contraction order chosen for the dims in use say so.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "compiler/pipeline/pipeline.h"
#include "compiler/report/json.h"
#include "dsl/render.h"
#include "tests/support/json_schema.h"

using namespace einc;
using Json = nlohmann::json;

namespace {

Json report_of(const std::string& text) {
  const Compilation c = compile_text("order.ein", text, {});
  REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
  ReportOptions options;
  options.detail = Detail::ops;
  options.device = *find_device("a100-80gb");
  options.training = TrainingRequest{8, 1e9, 0.5};
  const Json report = Json::parse(render_json(build_report(*c.graph, options), *c.graph));
  std::ifstream file(EINC_SOURCE_DIR "/compiler/report/report.schema.json");
  const Json schema = Json::parse(file);
  for (const std::string& problem : test::SchemaCheck(schema)(report)) FAIL_CHECK(problem);
  return report;
}

bool for_dims(const Json& json) { return json.contains("valid_for") && json["valid_for"] == "dims"; }

const Json& module_of(const Json& report, const std::string& path) {
  for (const Json& module : report["modules"])
    if (module["path"] == path) return module;
  FAIL(path);
  return report;
}

const std::string kDims = R"(
dim B = 8, D = 512, F = 2048, K = 64
input x: f32[B D]
param w1: [D F] ~ normal(std = 0.02)
param w2: [F K] ~ normal(std = 0.02)
fn plain(x: [... a]) {
  param w: [a out=4] ~ normal(std = 0.02)
  return einsum(x, w, "... a, a out -> ... out")
}
)";

}  // namespace

TEST_CASE("an einsum of three operands marks the totals it is part of, and no others") {
  const Json report = report_of(kDims + R"(
fn chain(x: [... d], w1: [d f], w2: [f k]) { return einsum(x, w1, w2, "... d, d f, f k -> ... k") }
y = chain(x, w1, w2) as product
loss = mean((plain(y) as tail)^2)
minimize loss using sgd(lr = 0.1)
)");
  CHECK(for_dims(report["flops"]));
  CHECK(for_dims(report["flops"]["forward"]));
  CHECK(for_dims(report["flops"]["backward"]));
  CHECK_FALSE(for_dims(report["flops"]["optimizer"]));
  CHECK(for_dims(report["six_nd"]));
  CHECK(for_dims(report["memory"]["saved_activations"]));  // the product of x and w1
  CHECK_FALSE(for_dims(report["memory"]["parameters"]));
  CHECK(for_dims(report["device"]));
  CHECK(for_dims(report["training"]));
  CHECK(for_dims(module_of(report, "")));
  CHECK(for_dims(module_of(report, "product")));
  CHECK_FALSE(for_dims(module_of(report, "tail")));
  for (const Json& op : report["ops"])
    if (op["kind"] == "contract") CHECK(for_dims(op) == (op["module"] == "product"));
}

TEST_CASE("einsums of two operands mark nothing") {
  const Json report = report_of(kDims + R"(
h = einsum(x, w1, "b d, d f -> b f")
loss = mean((plain(einsum(h, w2, "b f, f k -> b k")) as tail)^2)
minimize loss using sgd(lr = 0.1)
)");
  CHECK_FALSE(for_dims(report["flops"]));
  CHECK_FALSE(for_dims(report["flops"]["forward"]));
  CHECK_FALSE(for_dims(report["six_nd"]));
  CHECK_FALSE(for_dims(report["memory"]["saved_activations"]));
  CHECK_FALSE(for_dims(module_of(report, "")));
  for (const Json& op : report["ops"]) CHECK_FALSE(for_dims(op));
}
