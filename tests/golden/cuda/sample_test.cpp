// SPDX-License-Identifier: Apache-2.0
// `einc sample --target=cuda`: two specialisations of one program share params and the cache of keys on the GPU.
#include <doctest/doctest.h>
#include <einc/einc.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/run_einc.h"

namespace einc::test {

TEST_CASE("greedy text from the GPU is the processor's") {
  const std::vector<std::string> sizes{"-D", "layers=1", "-D", "heads=2", "-D", "head=8", "-D", "vocab=256"};
  const std::string weights = (std::filesystem::temp_directory_path() / fmt::format("einc_gpu_weights_{}.safetensors", getpid())).string();
  CompileOptions options;
  options.dims = {{"batch", 1}, {"vocab", 256}, {"layers", 1}, {"heads", 2}, {"head", 8}, {"seq", 32}};
  options.purpose = Purpose::inference;
  options.target = Target::reference;
  Session session(compile_file("examples/nanogpt.ein", options));
  session.init(1);
  session.save(weights);
  for (const auto& [program, length] : {std::pair{"examples/nanogpt.ein", "seq=32"}, {"examples/nanogpt_sample.ein", "context=32"}}) {
    std::vector<std::string> arguments{"sample",   program,   "-D", length, "--weights", weights,
                                       "--prompt", "One day", "-n", "12",   "--greedy",  "--quiet"};
    arguments.insert(arguments.end(), sizes.begin(), sizes.end());
    const Ran cpu = run_einc(arguments);
    arguments.emplace_back("--target=cuda");
    const Ran gpu = run_einc(arguments);
    CAPTURE(length);
    CAPTURE(gpu.errors);
    CHECK(cpu.status == 0);
    CHECK(gpu.status == 0);
    CHECK(gpu.output == cpu.output);
    CHECK(gpu.output.size() > 10);
  }
  std::filesystem::remove(weights);
}

}  // namespace einc::test
