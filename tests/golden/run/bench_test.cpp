// SPDX-License-Identifier: Apache-2.0
// `einc bench` through the binary: its figures agree with each other and with the report.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/driver/bench.h"
#include "tests/support/near_seconds.h"
#include "tests/support/run_einc.h"

namespace einc::test {
namespace {

using Json = nlohmann::json;

const std::vector<std::string> kModel = {"examples/mlp.ein", "-D", "batch=16"};

std::vector<std::string> with(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  std::vector<std::string> all = before;
  all.insert(all.end(), kModel.begin(), kModel.end());
  all.insert(all.end(), after.begin(), after.end());
  return all;
}

}  // namespace

TEST_CASE("a machine that did less while its peak was measured than in the step is no base for MFU") {
  BenchResult bench;
  bench.steps = {bench.step = 0.5};
  bench.algorithmic = 9e9;
  bench.executed.contraction = 8'000'000'000;
  bench.peak.flops = 20e9;
  CHECK(*bench.mfu() == doctest::Approx(0.9));
  bench.peak.flops = 15e9;
  CHECK(!bench.mfu());
  CHECK(bench_text(bench, 0).find("while other work ran") != std::string::npos);
  bench.executed.contraction = 4'000'000'000;  // of masked attention, say
  CHECK(!bench.mfu());
  CHECK(bench_text(bench, 0).find("skips work") != std::string::npos);
  const CpuPeak best = best_of({.flops = 1, .copy = 5, .round_trip = 3e-7}, {.flops = 2, .copy = 4, .round_trip = 2e-7});
  CHECK(best.flops == 2);
  CHECK(best.copy == 5);
  CHECK(best.round_trip == 2e-7);
}

TEST_CASE("bench: no step takes less than its lower bound, of products or of memory") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const auto program = [&](const char* name, const char* text) {
    const std::string path = (folder / fmt::format("einc_bench_{}_{}", getpid(), name)).string();
    std::ofstream(path) << text;
    return path;
  };
  // one product of 2 * 768^3 FLOPs and little else; 120 MB of params that a step reads and writes
  const std::string product = program(
      "product.ein",
      "dim n = 768\ninput x: [n k=768]\nparam w: [k=768 m=768] ~ normal(std = 0.1)\noutput y = einsum(x, w, \"n k, k m -> n m\")\n");
  const std::string params =
      program("params.ein", "dim n = 30000000\nparam w: [n] ~ normal(std = 0.1)\nloss = mean(w)\nminimize loss using sgd(lr = 0.1)\n");
  for (const std::string& file : {std::string("examples/mlp.ein"), std::string("examples/cnn.ein"), product, params})
    for (const std::string precision : {"f32", "bf16"}) {
      CAPTURE(file);
      const Ran ran = run_einc({"bench", file, "--json", "--steps", "5", "--precision", precision});
      INFO(ran.errors);
      REQUIRE(ran.status == 0);
      const Json bench = Json::parse(ran.output);
      const double least = bench["lower_bound_s"].get<double>();
      CHECK((least > 0 || file == params));  // a last cache may hold those
      for (const Json& step : bench["steps_s"]) CHECK(step.get<double>() >= least);
    }
  for (const std::string& path : {product, params}) std::filesystem::remove(path);
}

TEST_CASE("bench: figures that follow from each other do, and FLOPs and memory are the report's") {
  for (const std::string mode : {"training", "inference"})
    for (const std::string threads : {"1", "2"}) {
      CAPTURE(mode);
      CAPTURE(threads);
      const Ran ran = run_einc(with({"bench"}, {"--json", "--steps", "3", "--threads", threads, "--mode", mode}));
      INFO(ran.errors);
      REQUIRE(ran.status == 0);
      const Json bench = Json::parse(ran.output);
      CHECK(bench["threads"].get<int>() == std::stoi(threads));
      for (const char* peak : {"f32_flops", "copy_bytes", "triad_bytes", "cache_bytes_per_s"})
        CHECK(bench["machine"][peak].get<double>() > 1e8);
      CHECK(bench["machine"]["launch_s"].get<double>() < 1e-3);
      const double small = bench["machine"]["small_launch_s"];
      CHECK(small > 1e-9);
      CHECK(small < 1e-5);
      for (const Json& kernel : bench["kernels"]) CHECK(kernel["predicted_s"].get<double>() >= small);
      double predicted = 0;
      for (const Json& kernel : bench["kernels"]) predicted += kernel["predicted_s"].get<double>();
      CHECK(bench["predicted_s"].get<double>() == near_seconds(predicted));
      CHECK(predicted > 0);
      CHECK(bench["machine"]["round_trip_s"].is_null() == (threads == "1"));
      std::vector<double> steps = bench["steps_s"];
      REQUIRE(steps.size() == 3);
      std::sort(steps.begin(), steps.end());
      CHECK(bench["step_s"].get<double>() == steps[1]);
      const double flops = bench["flops"]["step"], seconds = bench["step_s"];
      if (const Json& mfu = bench["flops"]["mfu"]; !mfu.is_null())
        CHECK(mfu.get<double>() == doctest::Approx(flops / seconds / bench["machine"]["f32_flops"].get<double>()));
      int64_t executed = 0, of_kernels = 0;
      for (const auto& part : bench["flops"]["executed"]) executed += part.get<int64_t>();
      for (const Json& kernel : bench["kernels"]) of_kernels += kernel["flops"].get<int64_t>();
      CHECK(executed == of_kernels);

      const int64_t planned = bench["memory"]["planned"], high_water = bench["memory"]["high_water"], before = bench["memory"]["before"];
      CHECK(planned > 0);
      CHECK(high_water >= before);
      if (mode != "training") continue;
      const Json report = Json::parse(run_einc(with({}, {"--report=json", "--threads=" + threads})).output);
      CHECK(flops == report["flops"]["step"].get<double>());
      CHECK(executed == report["flops"]["executed"].get<int64_t>());
      CHECK(planned == report["memory"]["peak_training"]["bytes"].get<int64_t>());
    }
}

// The emulated GPU, whose clock tells nothing.
TEST_CASE("bench: on a GPU, the same FLOPs and its own memory") {
  const Ran ran = run_einc(with({"bench"}, {"--json", "--steps", "2", "--target=cuda"}));
  INFO(ran.errors);
  REQUIRE(ran.status == 0);
  const Json bench = Json::parse(ran.output);
  CHECK(bench["target"] == "cuda");
  CHECK(bench["machine"]["gpu"].get<std::string>().size() > 2);
  for (const char* peak : {"f32_flops", "bf16_flops", "copy_bytes"}) CHECK(bench["machine"][peak].get<double>() > 0);
  CHECK(bench["machine"]["triad_bytes"].is_null());
  CHECK(bench["predicted_s"].get<double>() > 0);
  const Json report = Json::parse(run_einc(with({}, {"--report=json"})).output);
  CHECK(bench["flops"]["step"].get<double>() == report["flops"]["step"].get<double>());
  int64_t executed = 0, launches = 0;
  for (const Json& kernel : bench["kernels"]) executed += kernel["flops"].get<int64_t>(), launches += kernel["launches"].get<int64_t>();
  CHECK(static_cast<double>(executed) >= bench["flops"]["step"].get<double>() * 0.9);
  CHECK(launches > 5);
  const int64_t planned = bench["memory"]["planned"],
                taken = bench["memory"]["high_water"].get<int64_t>() - bench["memory"]["before"].get<int64_t>();
  CHECK(taken >= planned);
  CHECK(taken <= planned + (1 << 20));
  // The report of that step on a GPU that is not there.
  const Json there = Json::parse(run_einc(with({}, {"--report=json", "--device=h200"})).output);
  CHECK(there["target"] == "cuda");
  CHECK(there["memory"]["peak_training"]["bytes"].get<int64_t>() == planned);
  int64_t rows = 0;
  for (const Json& row : there["memory"]["at_peak"]) rows += row.get<int64_t>();
  CHECK(rows == planned);
}

TEST_CASE("bench: one decoded token writes as many bytes into a long cache as into a short one") {
  for (const auto& [seq, precision] : {std::pair<std::string, std::string>("1", "f32"), {"8", "f32"}, {"1", "bf16"}, {"8", "bf16"}}) {
    CAPTURE(seq);
    CAPTURE(precision);
    std::set<int64_t> written, read, planned;
    for (const std::string context : {"64", "1024"}) {
      const Ran ran =
          run_einc({"bench", "examples/nanogpt_sample.ein", "-D", "layers=2", "-D", "heads=3", "-D", "head=16", "-D", "vocab=65", "-D",
                    "seq=" + seq, "-D", "context=" + context, "--steps", "1", "--json", "--precision", precision});
      INFO(ran.errors);
      REQUIRE(ran.status == 0);
      int64_t writes = 0, reads = 0;
      const Json bench = Json::parse(ran.output);
      for (const Json& kernel : bench["kernels"])
        writes += kernel["bytes_written"].get<int64_t>(), reads += kernel["bytes_read"].get<int64_t>();
      written.insert(writes), read.insert(reads), planned.insert(bench["memory"]["planned"].get<int64_t>());
    }
    CHECK(written.size() == 1);
    const int64_t number = precision == "bf16" ? 2 : 4;
    CHECK(*read.rbegin() - *read.begin() > 2 * 2 * 3 * 16 * number * (1024 - 64) - 1);  // keys and values of both layers
    // The cache, the table of positions, and what a thread makes a row's scores in.
    if (seq == "1") CHECK(*planned.rbegin() - *planned.begin() < (2 * 2 + 1) * 3 * 16 * number * (1024 - 64) + (256 << 10));
  }
}

TEST_CASE("bench: the trace has every launch once a thread, in order, and no thread at two things at once") {
  const std::string path = (std::filesystem::temp_directory_path() / fmt::format("einc_trace_{}.json", getpid())).string();
  const Ran ran = run_einc(with({"bench"}, {"--steps", "1", "--threads", "2", "--trace", path}));
  REQUIRE(ran.status == 0);
  const size_t at = ran.output.find(" launches of");
  REQUIRE(at != std::string::npos);
  const int launches = std::stoi(ran.output.substr(ran.output.rfind(' ', at - 1)));
  const Json trace = Json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  std::map<int, double> free_from;
  std::set<std::pair<int, int>> seen;
  std::set<int> told;
  double last_begin_of_first_thread = -1;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") continue;
    CHECK(event["ph"] == "X");
    const int thread = event["tid"], launch = event["args"]["launch"];
    const double begin = event["ts"], duration = event["dur"];
    CHECK(duration >= 0);
    CHECK(begin >= free_from[thread]);
    free_from[thread] = begin + duration;
    CHECK(seen.insert({launch, thread}).second);
    told.insert(launch);
    if (thread == 0) {
      CHECK(begin > last_begin_of_first_thread);
      last_begin_of_first_thread = begin;
    }
  }
  CHECK(static_cast<int>(told.size()) == launches);
  CHECK(free_from.count(1) == 1);
}

TEST_CASE("bench: what cannot be measured is told") {
  CHECK(run_einc({"bench", "examples/mlp.ein", "--trace", "/none/t.json", "--steps", "1"}).status == 4);
  CHECK(run_einc({"bench", "none.ein"}).status == 4);
  CHECK(run_einc({"bench", "tests/golden/bad_input/programs/T10_free_dim.ein"}).status == 2);
}

}  // namespace einc::test
