// SPDX-License-Identifier: Apache-2.0
// `einc bench --target=cuda` on the emulated GPU.
#include "tests/golden/train/folder.h"

namespace einc::test {

TEST_CASE("each kernel that a benchmark lists has its time, products with epilogues too") {
  const TrainFolder files;
  const std::string program = files.text("layer.ein", R"(dim rows = 128, width = 256, hidden = 512
precision bf16
input x: [rows width]
param w: [width hidden] ~ normal(std = 0.1)
param b: [hidden] ~ zeros
output y = gelu_tanh(einsum(x, w, "rows width, width hidden -> rows hidden") + b)
)");
  setenv("EINC_GEMM_TABLE", files.at("algorithms.txt").c_str(), 1);  // what other programs measured decides nothing here
  const Ran ran = run_einc({"bench", program, "--target=cuda", "--steps=2", "--mode=inference", "--json"});
  unsetenv("EINC_GEMM_TABLE");
  CAPTURE(ran.errors);
  REQUIRE(ran.status == 0);
  bool found = false;
  const auto report = nlohmann::json::parse(ran.output);
  for (const auto& kernel : report.at("kernels")) {
    CAPTURE(kernel.at("symbol").get<std::string>());
    CHECK(kernel.at("time_s").get<double>() > 0);
    CHECK(kernel.at("predicted_s").get<double>() > 0);
    found = found || kernel.at("symbol").get<std::string>().find("plus a bias") != std::string::npos;
  }
  CHECK(found);
}

TEST_CASE("a benchmark counts launches that run as one as one") {
  const TrainFolder files;
  const std::string program = files.text("sums.ein", R"(param a: [n=300] ~ normal(std = 0.1)
param b: [n] ~ normal(std = 0.1)
param c: [n] ~ normal(std = 0.1)
loss = sum(a * b * c)
minimize loss using adamw(lr = 0.01)
)");
  const Ran plan = run_einc({program, "--emit=launches", "--device=h200", "--mode=training"});
  const Ran ran = run_einc({"bench", program, "--target=cuda", "--steps=2", "--json"});
  CAPTURE(ran.errors);
  REQUIRE(ran.status == 0);
  int64_t wanted = 0, joined = 0;
  for (size_t at = plan.output.find("\nlaunch "); at != std::string::npos;) {
    const size_t next = plan.output.find("\nlaunch ", at + 1);
    const std::string launch = plan.output.substr(at, next - at);
    const bool done_before = launch.find("with an earlier one") != std::string::npos;
    joined += done_before ? 1 : 0;
    wanted += done_before || launch.find("only where a bound") != std::string::npos ? 0 : 1;
    at = next;
  }
  CHECK(joined > 0);
  const auto report = nlohmann::json::parse(ran.output);
  int64_t launches = 0;
  for (const auto& kernel : report.at("kernels")) launches += kernel.at("launches").get<int64_t>();
  CHECK(launches == wanted);
}

}  // namespace einc::test
