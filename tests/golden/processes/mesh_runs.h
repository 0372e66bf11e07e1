// SPDX-License-Identifier: Apache-2.0
// Training runs of a mesh in the processes of a launcher, and how tests find and end those.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "tests/golden/train/folder.h"

namespace einc::test {

namespace fs = std::filesystem;

// Dropout, a table in parts, attention by heads, clipping; four times two devices.
inline constexpr std::string_view kMeshModel = R"(dim batch = 4, seq = 8, vocab = 16, heads = 2, head = 8
dim embed = heads * head
mesh data = 4, model = 2
shard batch over data
shard heads, vocab over model
shard states over data
input tokens:  i32[batch seq]
input targets: i32[batch seq]
param wte: [vocab embed] ~ normal(std = 0.1)
param w_qkv: [embed, three=3, heads, head] ~ normal(std = 0.1)
param w_out: [heads head embed] ~ normal(std = 0.1)
x = wte[vocab = tokens]
qkv = einsum(x, w_qkv, "batch seq embed, embed three heads head -> three batch heads seq head")
q = qkv[three = 0]
k: [batch heads key head] = qkv[three = 1]
v: [batch heads key head] = qkv[three = 2]
scores = einsum(q, k, "batch heads seq head, batch heads key head -> batch heads seq key") * rsqrt(head)
scores = where(iota(key) <= iota(seq), scores, -inf)
mixed = einsum(softmax(scores, key), v, "batch heads seq key, batch heads key head -> batch seq heads head")
y = x + dropout(einsum(mixed, w_out, "batch seq heads head, heads head embed -> batch seq embed"), 0.1)
logits = einsum(y, wte, "... embed, vocab embed -> ... vocab")
loss = mean(cross_entropy(logits, targets, vocab))
minimize loss using adamw(lr = cosine(0.01, warmup = 5, total = 60, floor = 0.001), clip_norm = 1.0)
)";

// Whether there is an mpirun and a plug-in for it; says so if not.
bool launches();

// Layers in a loop, which stages share; a tied table, dropout and clipping.
inline constexpr std::string_view kLayersModel = R"(dim batch = 4, seq = 8, vocab = 16, embed = 16, layers = 4
mesh stage = 4, data = 2
shard layers over stage (microbatches = 2)
shard batch over data
input tokens:  i32[batch seq]
input targets: i32[batch seq]
param wte: [vocab embed] ~ normal(std = 0.1)
fn block(x: [batch seq embed]) {
  param w: [inner=embed embed] ~ normal(std = 0.1)
  return x + dropout(tanh(einsum(x, w, "batch seq inner, inner embed -> batch seq embed")), 0.1)
}
x = wte[vocab = tokens]
for layer in layers {
  x = block(x) as h
}
logits = einsum(x, wte, "... embed, vocab embed -> ... vocab")
loss = mean(cross_entropy(logits, targets, vocab))
minimize loss using adamw(lr = cosine(0.01, warmup = 5, total = 60, floor = 0.001), clip_norm = 1.0)
)";

class MeshRuns {
 public:
  explicit MeshRuns(std::string_view model = kMeshModel) : program_(folder_.text("m.ein", model)) { folder_.tokens("train.bin", 1500, 16); }
  // Checkpoints go to folder `name`, the log to `name`.jsonl. One process: without a launcher.
  Ran run(int processes, const std::string& name, const std::vector<std::string>& more, Surroundings surroundings = {}) const {
    std::vector<std::string> all{"train", program_, "--seed=3", "--log-every=1"};
    if (std::ranges::none_of(more, [](const std::string& option) { return option.starts_with("--data"); }))
      all.push_back("--data=tokens=" + folder_.at("train.bin"));
    all.insert(all.end(), {"--checkpoint=" + folder_.at(name), "--log=" + folder_.at(name + ".jsonl")});
    all.insert(all.end(), more.begin(), more.end());
    if (processes > 1 && surroundings.launcher.empty())
      surroundings.launcher = {"timeout", "-k", "5", "60", "mpirun", "-np", std::to_string(processes)};
    return run_einc(all, surroundings);
  }
  void done(int processes, const std::string& name, const std::vector<std::string>& more) const {
    const Ran ran = run(processes, name, more);
    CHECK_MESSAGE(ran.status == 0, ran.errors);
  }
  // The three files of a checkpoint.
  std::string checkpoint(const std::string& name, uint64_t step) const {
    const std::string saved = folder_.saved(name, step);
    CHECK(!saved.empty());
    return saved + folder_.content(fmt::format("{}/step-{:08}/train.json", name, step));
  }
  std::vector<double> losses(const std::string& name) const { return folder_.logged(name + ".jsonl", "step", "loss"); }
  uint64_t logged_steps(const std::string& name) const { return folder_.logged_steps(name + ".jsonl"); }
  const TrainFolder& folder() const { return folder_; }

 private:
  TrainFolder folder_;
  std::string program_;
};

// Processes named einc below another one.
std::vector<pid_t> einc_below(pid_t top);
// Of another process' environment; empty: it has none of that name.
std::string variable_of(pid_t process, const std::string& name);

std::string first_line_with(const std::string& text, std::string_view what);
size_t count_of(const std::string& text, std::string_view what);

}  // namespace einc::test
