// SPDX-License-Identifier: Apache-2.0
// `--target=cuda` through the binary, on the emulated GPU: the same numbers as on the processor, and the same bits after an interruption.
#include <cmath>

#include "tests/golden/train/folder.h"

namespace einc::test {
namespace {

const bool shared = share_kernel_cache();

void check_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(tolerance));
}

constexpr std::string_view kAttentionModel = R"(dim batch = 2, seq = 24, vocab = 16, width = 16
precision bf16
input tokens:  i32[batch seq]
input targets: i32[batch seq]
param table: [vocab width] ~ normal(std = 0.3)
param w:     [width three=3 head=16] ~ normal(std = 0.3)
param out:   [head vocab] ~ normal(std = 0.1)
qkv = einsum(table[vocab = tokens], w, "batch seq width, width three head -> three batch seq head")
q = qkv[three = 0]
k: [batch key head] = qkv[three = 1]
v: [batch key head] = qkv[three = 2]
scores = where(iota(key) <= iota(seq), einsum(q, k, "batch seq head, batch key head -> batch seq key") * 0.25, -inf)
mixed = einsum(softmax(scores, key), v, "batch seq key, batch key head -> batch seq head")
logits = einsum(mixed, out, "batch seq head, head vocab -> batch seq vocab")
loss = mean(cross_entropy(logits, targets, vocab))
minimize loss using adamw(lr = 0.01)
)";

}  // namespace

TEST_CASE("training on the GPU gives the losses of the processor, evaluations and micro-batches included") {
  const Trained model;
  const std::vector<std::string> settings{"--steps=12", "--accumulate=2", "--eval-every=6", "--eval-batches=3",
                                          "--val=tokens=" + model.folder().at("val.bin")};
  auto on_gpu = settings;
  on_gpu.emplace_back("--target=cuda");
  const auto expected = model.losses("cpu", settings), losses = model.losses("gpu", on_gpu);
  check_near(losses, expected, 2e-5);
  check_near(model.folder().logged("gpu.jsonl", "evaluation", "validation_loss"),
             model.folder().logged("cpu.jsonl", "evaluation", "validation_loss"), 2e-5);
  check_near(model.folder().logged("gpu.jsonl", "step", "gradient_norm"), model.folder().logged("cpu.jsonl", "step", "gradient_norm"),
             1e-4);
  const auto log = model.folder().log("gpu.jsonl");
  CHECK(log.front().at("target") == "cuda");
  CHECK(log.front().at("device") == "emulated GPU");
}

TEST_CASE("a run on the GPU that goes on from a checkpoint ends with the same bits") {
  const Trained model;
  const std::string folder = "--checkpoint=" + model.folder().at("run");
  model.losses("whole", {"--steps=8", "--target=cuda"});
  model.losses("first", {"--steps=3", "--target=cuda", folder});
  model.losses("second", {"--steps=8", "--target=cuda", folder, "--resume"});
  CHECK(model.folder().content("second.safetensors") == model.folder().content("whole.safetensors"));
  const Ran other = model.run("third", {"--steps=9", folder, "--resume"});
  CHECK(other.status == 0);
  CHECK(other.errors.find("target was cuda, is cpu now") != std::string::npos);
  CHECK(other.errors.find("numerics was emulated GPU, gemm algorithms ") != std::string::npos);
}

TEST_CASE("a process that finds its algorithms in the table ends with the bits of the one that measured them") {
  const Trained model;
  const std::string table = model.folder().at("algorithms.txt");
  const std::vector<std::string> settings{"--steps=3", "--target=cuda", "-Dbatch=8", "-Dseq=32", "-Dwidth=256"};
  setenv("EINC_GEMM_TABLE", table.c_str(), 1);
  model.losses("cold", settings);
  const auto measured = std::filesystem::file_size(table);
  model.losses("warm", settings);
  unsetenv("EINC_GEMM_TABLE");
  CHECK(measured > 200);
  CHECK(std::filesystem::file_size(table) == measured);
  CHECK(model.folder().content("warm.safetensors") == model.folder().content("cold.safetensors"));
}

TEST_CASE("a run whose attention is a plug-in's goes on to the same bits with it, and tells when it is missing") {
  const Trained model(kAttentionModel);
  const std::string folder = "--checkpoint=" + model.folder().at("run");
  const std::vector<double> own = model.losses("own", {"--steps=4", "--target=cuda"});
  setenv("EINC_ATTENTION_PLUGIN", EINC_EMULATED_GPU "/libemulated_attention.so", 1);
  setenv("EINC_ATTENTION_ALWAYS", "1", 1);
  model.losses("whole", {"--steps=8", "--target=cuda"});
  check_near(model.losses("first", {"--steps=4", "--target=cuda", folder}), own, 5e-3);
  model.losses("second", {"--steps=8", "--target=cuda", folder, "--resume"});
  unsetenv("EINC_ATTENTION_ALWAYS");
  setenv("EINC_ATTENTION_PLUGIN", "nowhere.so", 1);
  const Ran without = model.run("third", {"--steps=9", "--target=cuda", folder, "--resume"});
  unsetenv("EINC_ATTENTION_PLUGIN");
  CHECK(model.folder().content("second.safetensors") == model.folder().content("whole.safetensors"));
  CHECK(without.status == 0);
  CHECK(without.errors.find(
            "warning: no attention plug-in in 'nowhere.so': there is no such file; attention is left to einc's own kernels") !=
        std::string::npos);
  CHECK(without.errors.find(", attention by emulated attention 1, is emulated GPU, gemm algorithms ") != std::string::npos);
}

TEST_CASE("a loss that is not finite on the GPU is explained") {
  const Trained model(std::string(kTokenModel).replace(std::string(kTokenModel).find("tanh(x)"), 7, "exp(80 * x + 60)"));
  const Ran ran = model.run("a", {"--steps=40", "--target=cuda"});
  CHECK(ran.status == 5);
  CHECK(ran.errors.find("einc: the loss of step 1 is ") == 0);
  CHECK(ran.errors.find(" is the first tensor that holds ") != std::string::npos);
}

TEST_CASE("tokens outside the vocabulary are named") {
  const Trained model;
  model.folder().tokens("train.bin", 3000, 40);
  const Ran ran = model.run("a", {"--steps=4", "--target=cuda"});
  CHECK(ran.status == 3);
  CHECK(ran.errors.find("index out of range: 'tokens' at [") != std::string::npos);
  CHECK(ran.errors.find(", but axis 'vocab' of 'table' has size 16 (") != std::string::npos);
}

TEST_CASE("einc run gives the outputs of the processor") {
  const TrainFolder folder;
  const std::string program = folder.text("f.ein", "dim n = 6\nparam w: [n] ~ normal(std = 1)\noutput y = softmax(w, n)\n");
  const Ran cpu = run_einc({"run", program, "--seed=4"}), gpu = run_einc({"run", program, "--seed=4", "--target=cuda"});
  CHECK(cpu.status == 0);
  CHECK(gpu.status == 0);
  CHECK(gpu.errors.empty());
  CHECK(cpu.output.rfind("y: f32[6] 0.", 0) == 0);
  CHECK(gpu.output.substr(0, 17) == cpu.output.substr(0, 17));
}

TEST_CASE("without a driver the missing library is named") {
  setenv("EINC_CUDA_PATH", "/nonexistent", 1);
  const TrainFolder folder;
  const std::string program = folder.text("f.ein", "dim n = 6\nparam w: [n] ~ ones\noutput y = w * 2\n");
  const Ran ran = run_einc({"run", program, "--target=cuda"});
  unsetenv("EINC_CUDA_PATH");
  if (ran.status == 0) return;  // this machine has a GPU
  CHECK(ran.status == 4);
  CHECK(ran.errors.find("einc: ") == 0);
  const bool named = ran.errors.find("libcuda.so.1") != std::string::npos || ran.errors.find("GPU") != std::string::npos;
  CHECK(named);
}

}  // namespace einc::test
