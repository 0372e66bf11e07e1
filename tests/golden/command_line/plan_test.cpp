// SPDX-License-Identifier: Apache-2.0
// --plan on the command line: its lines, pasted, give the numbers that it predicted; what it refuses.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/few_cases.h"
#include "tests/support/near_seconds.h"
#include "tests/support/run_einc.h"
#include "tests/support/sample.h"

namespace einc::test {
namespace {

bool tells(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const std::vector<std::string> kSmallGpt{"examples/gpt2.ein", "-D", "vocab=1024", "-D", "layers=8", "-D", "seq=128"};

std::vector<std::string> asked(std::vector<std::string> arguments, std::initializer_list<std::string> more) {
  arguments.insert(arguments.end(), more);
  return arguments;
}

}  // namespace

TEST_CASE("plan: pasted lines give the numbers predicted") {
  const Ran ran = run_einc(asked(kSmallGpt, {"--plan", "8xh100-sxm", "--report=json"}));
  REQUIRE_MESSAGE(ran.status == 0, ran.errors);
  const auto plan = nlohmann::json::parse(ran.output);
  CHECK(plan["ways"].size() == 10);
  const Sample sample(2);
  size_t number = 0;
  double before = 0;
  for (const auto& way : plan["ways"]) {
    CAPTURE(way["mesh"].get<std::string>());
    CAPTURE(way["shard"].get<std::string>());
    CHECK(way["step_time_s"].get<double>() >= before);
    before = way["step_time_s"].get<double>();
    CHECK(way["memory"]["total"].get<double>() <= plan["memory_bytes"].get<double>());
    if (way["micro_batches"] != 1 || !sample.takes(number++)) continue;
    const Ran pasted = run_einc(asked(kSmallGpt, {"--device=h100-sxm", "--mesh", way["mesh"], "--shard", way["shard"], "--report=json"}));
    REQUIRE_MESSAGE(pasted.status == 0, pasted.errors);
    const auto device = nlohmann::json::parse(pasted.output)["per_device"];
    CHECK(way["communication_bytes"].get<double>() == doctest::Approx(device["communication"]["bytes"].get<double>()).epsilon(1e-12));
    CHECK(way["flops"].get<double>() == doctest::Approx(device["flops"]["count"].get<double>()).epsilon(1e-12));
    CHECK(way["memory"]["parameters"].get<double>() == doctest::Approx(device["parameters"]["bytes"].get<double>()).epsilon(1e-12));
    CHECK(way["memory"]["gradients"].get<double>() == doctest::Approx(device["gradients"]["bytes"].get<double>()).epsilon(1e-12));
    // What a process takes besides its device is known of a report alone.
    const double planned = device["planned"]["peak"].get<double>() - device["planned"]["process"].get<double>();
    CHECK(way["memory"]["total"].get<double>() == doctest::Approx(planned).epsilon(0.04));
    CHECK(way["communication_s"].get<double>() == near_seconds(device["communication_s"].get<double>(), 1e-6));
    CHECK(way["step_time_s"].get<double>() == near_seconds(device["step_time_s"].get<double>(), 0.02));
  }
}

// Of ways with stages, numbers are those of the stage with the most FLOPs; memory is the fullest stage's. Under AddressSanitizer unit/plan
// plans with stages, and under limits.
TEST_CASE("plan: pasted lines of stages give the numbers predicted") {
  if (kFewCases || !Sample(2).takes(0)) return;
  const Ran ran = run_einc(asked(kSmallGpt, {"--plan", "16xh100-sxm", "--report=json"}));
  REQUIRE_MESSAGE(ran.status == 0, ran.errors);
  const auto plan = nlohmann::json::parse(ran.output);
  const Sample sample(3);
  size_t staged = 0, keeping = 0;
  for (const auto& way : plan["ways"]) {
    CAPTURE(way["mesh"].get<std::string>());
    CAPTURE(way["shard"].get<std::string>());
    keeping += way["memory_limit"].is_null();
    if (way["stages"].is_null()) continue;
    CHECK(tells(way["shard"], "layers=stage(microbatches="));
    if (!sample.takes(staged++)) continue;
    const Ran pasted = run_einc(asked(kSmallGpt, {"--device=h100-sxm", "--mesh", way["mesh"], "--shard", way["shard"], "--report=json"}));
    REQUIRE_MESSAGE(pasted.status == 0, pasted.errors);
    const auto report = nlohmann::json::parse(pasted.output);
    const auto &device = report["per_device"], &pipeline = report["mesh"]["pipeline"];
    CHECK(pipeline["shown"] == way["stages"]["shown"]);
    CHECK(pipeline["stages"].size() == way["stages"]["count"]);
    CHECK(pipeline["microbatches"] == way["micro_batches"]);
    CHECK(way["communication_bytes"].get<double>() == doctest::Approx(device["communication"]["bytes"].get<double>()).epsilon(1e-12));
    CHECK(way["flops"].get<double>() == doctest::Approx(device["flops"]["count"].get<double>()).epsilon(1e-12));
    CHECK(way["communication_s"].get<double>() == near_seconds(device["communication_s"].get<double>(), 1e-6));
    // Where each microbatch's gradients are shared out, those of the last two layers are not hidden, which a sample of fewer cannot tell.
    const bool shares_out = way["spread"] == "gradients" || way["spread"] == "params";
    CHECK(way["idle_s"].get<double>() == near_seconds(device["idle_s"].get<double>(), shares_out ? 0.1 : 0.03));
    CHECK(way["step_time_s"].get<double>() == near_seconds(device["step_time_s"].get<double>(), shares_out ? 0.1 : 0.02));
    const auto& fullest = pipeline["stages"][way["stages"]["fullest"].get<size_t>()];
    CHECK(way["memory"]["parameters"].get<double>() == doctest::Approx(fullest["parameters"].get<double>()).epsilon(1e-12));
  }
  CHECK(staged > 0);
  CHECK(keeping > 0);
}

TEST_CASE("plan: a way that fits by recomputation, pasted, recomputes and fits") {
  if (kFewCases || !Sample(2).takes(1)) return;
  const std::vector<std::string> kLong{"examples/llama.ein", "-D", "layers=14",  "-D", "embed=2048", "-D",
                                       "heads=16",           "-D", "kv_heads=8", "-D", "ffn=8192",   "-D",
                                       "vocab=32768",        "-D", "seq=65536",  "-D", "batch=4",    "--precision=bf16"};
  const Ran ran = run_einc(asked(kLong, {"--plan", "4xh100-sxm", "--report=json"}));
  REQUIRE_MESSAGE(ran.status == 0, ran.errors);
  const auto ways = nlohmann::json::parse(ran.output)["ways"];
  for (const auto& w : ways) CHECK(w["exposed_s"].get<double>() >= 0);  // few iterations tell of all
  const auto way = std::ranges::find_if(ways, [](const auto& w) { return w["micro_batches"] == 1 && !w["memory_limit"].is_null(); });
  REQUIRE(way != ways.end());
  CHECK((*way)["recompute_s"].get<double>() > 0);
  const auto limit = (*way)["memory_limit"].get<int64_t>();
  const Ran pasted = run_einc(asked(kLong, {"--device=h100-sxm", "--mesh", (*way)["mesh"], "--shard", (*way)["shard"], "--report=json",
                                            "--memory-limit", std::to_string(limit)}));
  REQUIRE_MESSAGE(pasted.status == 0, pasted.errors);
  const auto device = nlohmann::json::parse(pasted.output)["per_device"];
  CHECK(device["planned"]["peak"].get<int64_t>() <= limit);
  CHECK(!device["planned"]["recomputed"].empty());
  CHECK((*way)["step_time_s"].get<double>() == near_seconds(device["step_time_s"].get<double>(), 0.1));
}

TEST_CASE("plan: text and refusals") {
  const Ran text = run_einc({"examples/mlp.ein", "--plan", "8xh100-sxm"});
  CHECK(text.status == 0);
  CHECK(tells(text.output, "mlp.ein on 8 x h100-sxm"));
  CHECK(tells(text.output, "\n      mesh "));
  CHECK(tells(text.output, "\n      shard "));
  const struct {
    std::vector<std::string> arguments;
    int status;
    const char* message;
  } cases[] = {{{"examples/gpt2.ein", "--plan", "64xfoo"}, 2, "no device `foo`"},
               {{"examples/gpt2.ein", "--plan", "0xh100-sxm"}, 2, "from 2 to 1000000"},
               {{"examples/gpt2.ein", "--plan", "h100-sxm"}, 2, "such as 64xh100-sxm"},
               {{"examples/gpt2.ein", "--plan", "13xh100-sxm"}, 2, "-D batch=13"},
               {{"examples/gpt2.ein", "--plan", "8xv100"}, 2, "a link that spans 8 devices"},
               {{"examples/gpt2.ein", "--plan", "8xh100-sxm", "--mesh", "data=8"}, 2, "leave out --mesh"},
               {{"examples/gpt2.ein", "--plan", "8xh100-sxm", "--device=h200"}, 2, "leave out --device"},
               {{"examples/gpt2.ein", "--plan", "8xh100-sxm", "--report=csv"}, 2, "--report=json"},
               {{"examples/llama.ein", "-D", "layers=2", "-D", "embed=65536", "--plan", "2xh100-sxm"}, 4, "the least is"}};
  for (const auto& c : cases) {
    const Ran ran = run_einc(c.arguments);
    CAPTURE(ran.errors);
    CHECK(ran.status == c.status);
    CHECK(ran.output.empty());
    CHECK(tells(ran.errors, c.message));
  }
}

}  // namespace einc::test
