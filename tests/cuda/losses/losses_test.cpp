// SPDX-License-Identifier: Apache-2.0
// The first losses of GPT-2 on the GPU beside those of the processor, in each precision. The processor's stand in losses.txt, so that a
// build without LLVM has them: EINC_UPDATE_GOLDEN=1 rewrites the file (with LLVM), and the processor is held to it.
#include <doctest/doctest.h>
#include <einc/einc.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/test_gpu.h"

namespace einc {
namespace {

constexpr const char* kFile = "tests/cuda/losses/losses.txt";
constexpr int kSteps = 20;
constexpr int64_t kBatch = 4, kSeq = 64, kVocab = 96;

struct Case {
  const char* name;
  Precision precision;
  double of_gpu;  // relative difference that a GPU may show in any of the losses
  double of_cpu;  // and another processor than the file was made on
};
// A few times what the emulated GPU differs, whose sums are in another order as a GPU's are.
constexpr Case kCases[] = {{"f32", Precision::f32, 1e-4, 1e-5},
                           {"bf16", Precision::bf16, 1e-2, 5e-3},
                           {"f16", Precision::f16, 2e-3, 1e-3},
                           {"fp8", Precision::fp8, 2e-2, 1e-2}};

// Text of words over the vocabulary: some follow others, so that there is something to learn.
std::vector<int32_t> tokens_of(int step, int64_t shift) {
  std::vector<int32_t> tokens;
  for (int64_t b = 0; b < kBatch; ++b)
    for (int64_t t = 0; t < kSeq; ++t) {
      const int64_t at = t + shift + 7 * b + 13 * step;
      tokens.push_back(static_cast<int32_t>((at % 3 == 0 ? at * at : at * 5 + b) % kVocab));
    }
  return tokens;
}

// The example with a learning rate that shows within a few steps.
std::string program() {
  std::ostringstream text;
  text << std::ifstream("examples/gpt2.ein").rdbuf();
  std::string program = text.str();
  const std::string schedule = "cosine(6e-4, warmup = 2000, total = 600000, floor = 6e-5)";
  REQUIRE(program.find(schedule) != std::string::npos);
  return program.replace(program.find(schedule), schedule.size(), "3e-3");
}

std::vector<double> losses_on(Target target, Precision precision, int steps) {
  CompileOptions options;
  options.dims = {{"batch", kBatch}, {"seq", kSeq}, {"vocab", kVocab}, {"layers", 2}, {"heads", 2}, {"head", 64}};
  options.precision = precision;
  options.target = target;
  if (target == Target::cuda) {
    use_test_gpu();
    options.code_cache = test_cubin_folder();
  }
  Session session(compile_text(program(), options, "examples/gpt2.ein"));
  session.init(1);
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    session.set("tokens", tokens_of(i, 0));
    session.set("targets", tokens_of(i, 1));
    session.step();
    losses.push_back(session.loss());
  }
  return losses;
}

std::map<std::string, std::vector<double>> known_losses() {
  std::map<std::string, std::vector<double>> known;
  std::ifstream in(kFile);
  std::string line, name;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    words >> name;
    for (double loss = 0; words >> loss;) known[name].push_back(loss);
  }
  return known;
}

double difference(const std::vector<double>& got, const std::vector<double>& wanted) {
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(got[i] - wanted[i]) / wanted[i];
    if (!(error <= largest)) largest = error;
  }
  return largest;
}

}  // namespace

TEST_CASE("GPT-2's first losses on a GPU are the processor's") {
  const auto known = known_losses();
  // The emulated GPU takes a while.
  const int steps = tests_real_gpu() ? kSteps : 2;
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    const std::vector<double>& wanted = known.at(c.name);
    REQUIRE(wanted.size() == kSteps);
    CHECK(wanted.back() < 0.8 * wanted.front());
    const std::vector<double> losses = losses_on(Target::cuda, c.precision, steps);
    const double largest = difference(losses, wanted);
    fmt::print("{}: {} losses from {:.5f} to {:.5f} differ by {:.2g} at most\n", c.name, steps, losses.front(), losses.back(), largest);
    CHECK(largest <= c.of_gpu);
  }
}

#ifdef EINC_WITH_LLVM
TEST_CASE("GPT-2's first losses on the processor are those of the file") {
  if (tests_real_gpu()) return;
  std::string text;
  const auto known = known_losses();
  for (const Case& c : kCases) {
    const std::vector<double> losses = losses_on(Target::cpu, c.precision, kSteps);
    text += c.name;
    for (const double loss : losses) text += fmt::format(" {:.9g}", loss);
    text += "\n";
    if (std::getenv("EINC_UPDATE_GOLDEN")) continue;
    CAPTURE(c.name);
    CHECK(difference(losses, known.at(c.name)) <= c.of_cpu);
  }
  if (std::getenv("EINC_UPDATE_GOLDEN")) std::ofstream(kFile) << text;
}
#endif

}  // namespace einc
