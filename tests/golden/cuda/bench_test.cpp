// SPDX-License-Identifier: Apache-2.0
// `einc bench --target=cuda` on the emulated GPU.
#include "tests/golden/train/folder.h"

namespace einc::test {

TEST_CASE("each kernel that a benchmark lists has its time, products with epilogues too") {
  const TrainFolder files;
  const std::string program = files.text("layer.ein", R"(dim rows = 64, in = 64, out = 128
precision bf16
input x: [rows in]
param w: [in out] ~ normal(std = 0.1)
param b: [out] ~ zeros
output y = gelu_tanh(einsum(x, w, "rows in, in out -> rows out") + b)
)");
  const Ran ran = run_einc({"bench", program, "--target=cuda", "--steps=2", "--mode=inference", "--json"});
  CAPTURE(ran.errors);
  REQUIRE(ran.status == 0);
  bool found = false;
  for (const auto& kernel : nlohmann::json::parse(ran.output).at("kernels")) {
    CAPTURE(kernel.at("symbol").get<std::string>());
    CHECK(kernel.at("time_s").get<double>() > 0);
    CHECK(kernel.at("predicted_s").get<double>() > 0);
    found = found || kernel.at("symbol").get<std::string>().find("plus a bias") != std::string::npos;
  }
  CHECK(found);
}

}  // namespace einc::test
