// SPDX-License-Identifier: Apache-2.0
// `einc train --checkpoint`: runs that are killed, interrupted or changed in between.
#include <csignal>
#include <cstdlib>
#include <random>

#include "tests/golden/train/folder.h"

namespace einc::test {
namespace {

namespace fs = std::filesystem;

// Two blocks of a transformer with dropout; every kind of state an optimizer leaves.
constexpr std::string_view kGpt = R"(dim batch = 3, seq = 12, vocab = 16, layers = 2, heads = 2, head = 8
dim embed = heads * head
input tokens:  i32[batch seq]
input targets: i32[batch seq]
param wte: [vocab embed] ~ normal(std = 0.1)
param wpe: [seq embed]   ~ normal(std = 0.1)
fn norm(x: [... c]) {
  param scale: [c] ~ ones
  centred = x - mean(x, c)
  return centred * rsqrt(mean(centred^2, c) + 1e-5) * scale
}
fn attention(x: [batch seq embed]) {
  param w_qkv: [embed, three=3, heads, head] ~ normal(std = 0.1)
  param w_out: [heads head embed] ~ normal(std = 0.1)
  qkv = einsum(x, w_qkv, "batch seq embed, embed three heads head -> three batch heads seq head")
  q = qkv[three = 0]
  k: [batch heads key head] = qkv[three = 1]
  v: [batch heads key head] = qkv[three = 2]
  scores = einsum(q, k, "batch heads seq head, batch heads key head -> batch heads seq key") * rsqrt(head)
  scores = where(iota(key) <= iota(seq), scores, -inf)
  mixed = einsum(dropout(softmax(scores, key), 0.1), v, "batch heads seq key, batch heads key head -> batch seq heads head")
  return einsum(mixed, w_out, "batch seq heads head, heads head embed -> batch seq embed")
}
fn block(x: [batch seq embed]) { return x + dropout(attention(norm(x) as ln), 0.1) as attn }
x = wte[vocab = tokens] + wpe
for layer in layers { x = block(x) as h }
logits = einsum(norm(x) as ln_f, wte, "... embed, vocab embed -> ... vocab")
loss = mean(cross_entropy(logits, targets, vocab))
minimize loss using adamw(lr = cosine(0.01, warmup = 5, total = 60, floor = 0.001), clip_norm = 1.0)
)";

class Runs {
 public:
  explicit Runs(std::string_view program = kTokenModel) : program_(folder_.text("m.ein", program)) {
    folder_.tokens("train.bin", 1500, 16);
  }
  std::vector<std::string> arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"train", program_, "--data", "tokens=" + folder_.at("train.bin"), "--quiet", "--order=epochs"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Ran run(const std::vector<std::string>& more) const { return run_einc(arguments(more)); }
  Ran done(const std::vector<std::string>& more) const {
    const Ran ran = run(more);
    CHECK_MESSAGE(ran.status == 0, ran.errors);
    return ran;
  }
  std::string checkpoint(const std::string& name) const { return "--checkpoint=" + folder_.at(name); }
  // The three files of a checkpoint, but for what train.json says of it.
  std::string state(const std::string& name, uint64_t step) const { return folder_.saved(name, step); }
  uint64_t logged_steps(const std::string& log) const { return folder_.logged_steps(log); }
  const TrainFolder& folder() const { return folder_; }

 private:
  TrainFolder folder_;
  std::string program_;
};

}  // namespace

TEST_CASE("a run that is killed at any moment and resumed on other threads ends with the same bits") {
  struct Row {
    const char* what;
    std::vector<std::string> options;
  };
  const Row rows[] = {{"f32", {}},
                      {"f16 with its loss scale", {"--precision=f16"}},
                      {"fp8 with its maxima", {"--precision=fp8"}},
                      {"bf16", {"--precision=bf16"}},
                      {"several batches a step", {"--accumulate=3"}}};
  const int asked = kills_asked(6);
  std::mt19937 random(static_cast<unsigned>(asked));
  int kills = 0, in_training = 0;
  for (size_t round = 0; kills < asked || round < std::size(rows); ++round) {
    const Row& row = rows[round % std::size(rows)];
    CAPTURE(row.what);
    CAPTURE(round);
    const Runs runs(kGpt);
    const auto options = [&](const std::string& name, uint64_t threads) {
      std::vector<std::string> all{"--steps=300",
                                   "--every=11",
                                   "--seed=5",
                                   "--log-every=1",
                                   "--log=" + runs.folder().at(name + ".jsonl"),
                                   runs.checkpoint(name),
                                   fmt::format("--threads={}", threads)};
      all.insert(all.end(), row.options.begin(), row.options.end());
      return all;
    };
    runs.done(options("first", 1));
    runs.done(options("whole", 1));
    REQUIRE(runs.state("first", 300) == runs.state("whole", 300));

    // Killed when its log holds so many steps, those of killed runs before it included: wherever it has come to by then.
    const auto resume = [&](uint64_t threads, std::optional<uint64_t> killed_at) {
      auto arguments = options("killed", threads);
      arguments.push_back("--resume");
      const auto arrived = [&] { return runs.logged_steps("killed.jsonl") >= *killed_at; };
      const Ran ran = killed_at ? run_einc(runs.arguments(arguments), Signal{SIGKILL, arrived}) : runs.run(arguments);
      CHECK_MESSAGE(ran.errors.empty(), ran.errors);
      return ran;
    };
    for (int here = 0; here < 1 + asked / 3; ++here) {
      const Ran ran = resume(1 + random() % 3, random() % 300);
      if (ran.status == 0) break;
      REQUIRE(ran.signal == SIGKILL);
      ++kills;
      in_training +=
          fs::exists(runs.folder().at("killed")) && fs::directory_iterator(runs.folder().at("killed")) != fs::directory_iterator();
    }
    CHECK(resume(1, std::nullopt).status == 0);
    CHECK(runs.state("killed", 300) == runs.state("whole", 300));
  }
  CHECK(in_training > 0);
  MESSAGE(kills, " kills, ", in_training, " of them with a checkpoint behind");
}

TEST_CASE("the log of a resumed run has each step once, with the undisturbed run's values") {
  const Runs runs;
  runs.folder().tokens("val.bin", 200, 16);
  const std::string validation = "--val=tokens=" + runs.folder().at("val.bin");
  const auto with = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> all{"--every=10",
                                 "--keep=9",
                                 "--log-every=1",
                                 "--eval-every=5",
                                 validation,
                                 runs.checkpoint(name),
                                 "--log=" + runs.folder().at(name + ".jsonl")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  runs.done(with("whole", {"--steps=40"}));
  // As a kill at step 27 leaves it, and one before the next checkpoint: twenty steps are saved, the log's last line is cut off.
  for (int kill = 0; kill < 2; ++kill) {
    runs.done(with("killed", {"--steps=27", "--resume"}));
    for (const uint64_t step : {25, 27}) fs::remove_all(runs.folder().at(fmt::format("killed/step-{:08}", step)));
    REQUIRE(fs::exists(runs.folder().at("killed/step-00000020")));
    fs::resize_file(runs.folder().at("killed.jsonl"), fs::file_size(runs.folder().at("killed.jsonl")) - 7);
  }
  runs.done(with("killed", {"--steps=40", "--resume"}));
  for (const auto& [kind, field] : {std::pair{"step", "step"}, {"step", "loss"}, {"evaluation", "step"}, {"evaluation", "validation_loss"}})
    CHECK(runs.folder().logged("killed.jsonl", kind, field) == runs.folder().logged("whole.jsonl", kind, field));
  CHECK(runs.folder().logged("killed.jsonl", "run", "first_step") == std::vector<double>{0, 20});
  CHECK(runs.folder().logged("killed.jsonl", "end", "step") == std::vector<double>{40});

  // Not somebody's letters.
  const std::string letter = runs.folder().text("letter.txt", "Dear reader,\n");
  const Ran refused = runs.run({"--steps=50", "--resume", validation, runs.checkpoint("killed"), "--log=" + letter});
  CHECK(refused.status == 3);
  CHECK(refused.errors == "einc: " + letter + ": line 1 is not a line of a log that `einc train --log` writes\n");
  CHECK(runs.folder().content("letter.txt") == "Dear reader,\n");
}

TEST_CASE("an interrupt finishes the step, saves, and says how to go on") {
  const Runs runs(kGpt);
  const std::string log = "--log=" + runs.folder().at("log");
  const std::vector<std::string> options{"--steps=100000", "--every=100000", "--seed=5", "--log-every=1", log, runs.checkpoint("c")};
  const auto after = [&](uint64_t steps) { return [&, steps] { return runs.logged_steps("log") >= steps; }; };
  for (const int signal : {SIGINT, SIGTERM}) {
    auto more = options;
    if (signal == SIGTERM) more.push_back("--resume");
    const Ran ran = run_einc(runs.arguments(more), Signal{signal, after(runs.logged_steps("log") + 3)});
    INFO(ran.errors);
    CHECK(ran.status == 130);
    CHECK(ran.errors.find("einc: interrupted after step ") == 0);
    CHECK(ran.errors.find(" is saved: go on with --resume\n") != std::string::npos);
  }
  fs::remove(runs.folder().at("log"));
  const Ran without = run_einc(runs.arguments({"--steps=100000", "--log-every=1", log}), Signal{SIGINT, after(3)});
  CHECK(without.status == 130);
  CHECK(without.errors.ends_with("; nothing is saved: give --checkpoint\n"));
}

TEST_CASE("a folder with checkpoints is not begun anew, and one without is") {
  const Runs runs;
  runs.done({"--steps=4", "--every=2", runs.checkpoint("c"), "--resume"});
  const Ran again = runs.run({"--steps=4", runs.checkpoint("c")});
  CHECK(again.status == 2);
  CHECK(again.errors ==
        "einc: " + runs.folder().at("c") + " has checkpoints up to step 4: go on from there with --resume, or take another folder\n");
  runs.done({"--steps=8", "--every=2", runs.checkpoint("c"), "--resume"});
  runs.done({"--steps=8", runs.checkpoint("whole")});
  CHECK(runs.state("c", 8) == runs.state("whole", 8));
  CHECK(fs::exists(runs.folder().at("c/step-00000006")));
  CHECK_FALSE(fs::exists(runs.folder().at("c/step-00000004")));
  CHECK(runs.run({"--steps=8", "--every=2"}).status == 2);
  CHECK(runs.run({"--steps=8", "--partial", runs.checkpoint("c")}).status == 2);
}

TEST_CASE("the best validation loss keeps its checkpoint, and its link") {
  const Runs runs;
  runs.folder().tokens("val.bin", 200, 16);
  const std::string validation = "--val=tokens=" + runs.folder().at("val.bin");
  runs.done(
      {"--steps=30", "--every=10", "--keep=1", "--eval-every=5", validation, runs.checkpoint("c"), "--log=" + runs.folder().at("log")});
  const auto losses = runs.folder().logged("log", "evaluation", "validation_loss"),
             steps = runs.folder().logged("log", "evaluation", "step");
  const auto best = static_cast<size_t>(std::min_element(losses.begin(), losses.end()) - losses.begin());
  CHECK(fs::read_symlink(runs.folder().at("c/best")) == fmt::format("step-{:08}", steps[best]));
  CHECK(fs::exists(runs.folder().at("c/best/weights.safetensors")));
}

TEST_CASE("a damaged checkpoint is passed over, aloud; another model or run is refused, or loaded in part") {
  const Runs runs;
  const std::vector<std::string> base{"--every=2", "--keep=3", "--seed=3", runs.checkpoint("c")};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), base.begin(), base.end());
    return more;
  };
  runs.done(with({"--steps=6"}));
  runs.done(with({"--steps=6", "--resume"}));
  const std::string newest = runs.folder().at("c/step-00000006/weights.safetensors");
  fs::resize_file(newest, fs::file_size(newest) - 1);
  const Ran passed = runs.done(with({"--steps=8", "--resume"}));
  CHECK(passed.errors == fmt::format("einc: warning: {}: {} bytes, but {} were written\n"
                                     "einc: warning: going on from {}, the newest checkpoint that is whole\n",
                                     newest, fs::file_size(newest) - 1, fs::file_size(newest), runs.folder().at("c/step-00000004")));
  runs.done({"--steps=8", "--seed=3", runs.checkpoint("whole")});
  CHECK(runs.state("c", 8) == runs.state("whole", 8));

  const Ran wider = runs.run(with({"--steps=9", "--resume", "-D", "width=32", "--data-seed=4"}));
  CHECK(wider.status == 3);
  const std::string at = runs.folder().at("c/step-00000008");
  CHECK(wider.errors.find(at + ": not a checkpoint of what is to be trained:\n  dim width was 24, is 32 now\n") != std::string::npos);
  CHECK(wider.errors.find("\n  seed of the data was 3, is 4 now\n") != std::string::npos);
  CHECK(wider.errors.find("\n  param 'out' is f32[24 16] in the checkpoint, f32[32 16] in the program\n") != std::string::npos);
  CHECK(runs.run(with({"--steps=9", "--resume", "--precision=bf16"})).errors.find("\n  precision was f32, is bf16 now\n") !=
        std::string::npos);
  const Ran partial = runs.done(with({"--steps=9", "--resume", "--partial", "-D", "vocab=20"}));
  CHECK(partial.errors.find("einc: warning: " + at + ": dim vocab was 16, is 20 now\n") != std::string::npos);
  CHECK(fs::exists(runs.folder().at("c/step-00000009")));

  runs.folder().text("c/step-00000009/train.json", "{}");
  for (const char* step : {"c/step-00000008", "c/step-00000006", "c/step-00000004"}) fs::remove_all(runs.folder().at(step));
  const Ran none = runs.run(with({"--steps=9", "--resume"}));
  CHECK(none.status == 3);
  CHECK(none.errors.find("none of its checkpoints is whole:\n") != std::string::npos);
}

TEST_CASE("a run begins with given weights") {
  const Runs runs;
  runs.done({"--steps=5", "--seed=1", "--save=" + runs.folder().at("w.safetensors")});
  runs.folder().text("names.txt", "table -> table\n");
  const Ran ran = runs.done({"--steps=1", "--seed=2", "--weights=" + runs.folder().at("w.safetensors"),
                             "--rename=" + runs.folder().at("names.txt"), runs.checkpoint("c")});
  CHECK(ran.errors.empty());
  const Ran wrong = runs.run({"--steps=1", "--weights=" + runs.folder().at("train.bin")});
  CHECK(wrong.status == 3);
}

}  // namespace einc::test
