// SPDX-License-Identifier: Apache-2.0
// A mesh shared out among processes that mpirun starts: the same bits for any number of them, one that speaks, and none that outlives
// another. Left out, by name, where there is no mpirun or no plug-in.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/golden/train/folder.h"

namespace einc::test {
namespace {

namespace fs = std::filesystem;

// Dropout, a table in parts, attention by heads, clipping; four times two devices.
constexpr std::string_view kMeshModel = R"(dim batch = 4, seq = 8, vocab = 16, heads = 2, head = 8
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

// Layers in a loop, which stages share; a tied table, dropout and clipping.
constexpr std::string_view kLayersModel = R"(dim batch = 4, seq = 8, vocab = 16, embed = 16, layers = 4
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

bool launches() {
  static const bool there = [] {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    const bool plugin = fs::exists(fs::path(EINC_BINARY_FOLDER) / "libeinc_mpi.so");
    return plugin && std::system("mpirun --version > /dev/null 2>&1") == 0;
  }();
  if (!there) MESSAGE("SKIP: no mpirun, or no plug-in of it");
  return there;
}

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
std::vector<pid_t> einc_below(pid_t top) {
  std::vector<std::pair<pid_t, pid_t>> all;  // with their parents
  std::vector<pid_t> below{top}, found;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const size_t end = text.rfind(')');
    if (end == std::string::npos) continue;
    const pid_t parent = std::atoi(text.c_str() + end + 4);
    all.emplace_back(std::atoi(name.c_str()), parent);
    if (text.find("(einc)") != std::string::npos) found.push_back(all.back().first);
  }
  for (size_t i = 0; i < below.size(); ++i)
    for (const auto& [process, parent] : all)
      if (parent == below[i]) below.push_back(process);
  std::erase_if(found, [&](pid_t process) { return std::ranges::find(below, process) == below.end(); });
  return found;
}

// Of another process' environment; empty: it has none of that name.
std::string variable_of(pid_t process, const std::string& name) {
  std::ifstream in(fmt::format("/proc/{}/environ", process));
  for (std::string entry; std::getline(in, entry, '\0');)
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  return "";
}

std::string first_line_with(const std::string& text, std::string_view what) {
  const size_t at = text.find(what);
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

size_t count_of(const std::string& text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("processes: one process and any number of threads leave one checkpoint, near that of the program without its mesh") {
  const MeshRuns runs;
  runs.done(1, "one", {"--steps=20", "--threads=1"});
  runs.done(1, "three", {"--steps=20", "--threads=3"});
  CHECK(runs.checkpoint("one", 20) == runs.checkpoint("three", 20));
  runs.done(1, "whole", {"--steps=20", "--mesh=data=1,model=1", "--shard=batch=data"});
  const std::vector<double> parts = runs.losses("one"), whole = runs.losses("whole");
  REQUIRE(parts.size() == 20);
  REQUIRE(whole.size() == 20);
  for (size_t i = 0; i < parts.size(); ++i) CHECK(parts[i] == doctest::Approx(whole[i]).epsilon(1e-5));
  CHECK(parts[19] < parts[0]);
}

TEST_CASE("processes: a mesh on a GPU trains near the processor's, and goes on to the same bits") {
  const bool shared = share_kernel_cache();
  CHECK(shared);
  const MeshRuns runs;
  runs.done(1, "cpu", {"--steps=8"});
  runs.done(1, "straight", {"--steps=8", "--target=cuda"});
  runs.done(1, "parts", {"--steps=3", "--target=cuda"});
  runs.done(1, "parts", {"--steps=8", "--target=cuda", "--resume"});
  CHECK(runs.checkpoint("parts", 8) == runs.checkpoint("straight", 8));
  const std::vector<double> parts = runs.losses("straight"), processor = runs.losses("cpu");
  REQUIRE(parts.size() == 8);
  for (size_t i = 0; i < parts.size(); ++i) CHECK(parts[i] == doctest::Approx(processor[i]).epsilon(1e-4));
}

TEST_CASE("processes: a run goes on over another mesh, says so, and ends near") {
  const MeshRuns runs;
  runs.done(1, "straight", {"--steps=20"});
  runs.done(1, "parts", {"--steps=5"});
  const Ran other = runs.run(1, "parts", {"--steps=10", "--resume", "--mesh=data=2", "--shard=batch=data; params=data"});
  CHECK_MESSAGE(other.status == 0, other.errors);
  CHECK(other.errors.find("mesh was data = 4, model = 2, is data = 2 now") != std::string::npos);
  runs.done(1, "parts", {"--steps=20", "--resume", "--mesh=model=2", "--shard=heads=model"});
  const std::vector<double> parts = runs.losses("parts"), straight = runs.losses("straight");
  REQUIRE(parts.size() >= 10);
  for (size_t i = 0; i < 10; ++i) CHECK(parts[parts.size() - 10 + i] == doctest::Approx(straight[10 + i]).epsilon(1e-4));
}

TEST_CASE("processes: any number of them leaves the same checkpoint, and one speaks") {
  if (!launches()) return;
  const MeshRuns runs;
  runs.done(1, "one", {"--steps=20"});
  for (const int processes : {2, 4, 8}) {
    CAPTURE(processes);
    const std::string name = fmt::format("of{}", processes);
    const Ran ran = runs.run(processes, name, {"--steps=20"});
    CHECK_MESSAGE(ran.status == 0, ran.errors);
    CHECK(runs.checkpoint(name, 20) == runs.checkpoint("one", 20));
    CHECK(runs.losses(name) == runs.losses("one"));
    CHECK(count_of(ran.output, "trained 20 steps") == 1);
  }
}

TEST_CASE("processes: the first one takes the memory that was foretold, with whole params for a checkpoint") {
  if (!launches()) return;
  const MeshRuns runs;
  const std::string file =
      runs.folder().text("large.ein",
                         "dim batch = 8, n = 1024, m = 1024\nmesh data = 4\nshard batch over data\nshard params over data\n"
                         "param w: [n m] ~ normal(std = 0.01)\nparam v: [m n] ~ normal(std = 0.01)\n"
                         "frozen param x: [batch n] ~ normal(std = 1)\nh = relu(einsum(x, w, \"batch n, n m -> batch m\"))\n"
                         "y = einsum(h, v, \"batch m, m n -> batch n\")\nloss = mean((y - x)^2)\n"
                         "minimize loss using adamw(lr = 1e-3)\n");
  Surroundings surroundings;
  surroundings.launcher = {"timeout", "-k", "5", "60", "mpirun", "-np", "4"};
  const Ran ran = run_einc({"train", file, "--steps=4", "--threads=1", "--every=2", "--checkpoint=" + runs.folder().at("large"),
                            "--log=" + runs.folder().at("large.jsonl")},
                           surroundings);
  REQUIRE_MESSAGE(ran.status == 0, ran.errors);
  const double predicted = runs.folder().logged("large.jsonl", "run", "predicted_bytes").front();
  const double measured = runs.folder().logged("large.jsonl", "end", "measured_bytes").front();
  CHECK(measured <= predicted + 8e6);  // what the allocator and MPI keep
  CHECK(measured >= predicted * 0.6);
}

TEST_CASE("processes: narrow numbers, several batches a step and evaluations leave the same checkpoint too") {
  if (!launches()) return;
  const MeshRuns runs;
  const std::vector<std::string> rows[] = {
      {"--precision=bf16", "--accumulate=2"},
      {"--precision=f16", "--val-fraction=0.2", "--eval-every=3", "--eval-batches=2"},
      {"--precision=fp8", "--shard=batch=data; heads,vocab=model; params=data", "--mesh=data=4,model=2"}};
  for (const std::vector<std::string>& row : rows) {
    CAPTURE(row.front());
    std::vector<std::string> options = row;
    options.push_back("--steps=8");
    runs.done(1, "one" + row.front(), options);
    runs.done(4, "four" + row.front(), options);
    CHECK(runs.checkpoint("four" + row.front(), 8) == runs.checkpoint("one" + row.front(), 8));
  }
}

TEST_CASE("processes: a run goes on with another number of them") {
  if (!launches()) return;
  const MeshRuns runs;
  runs.done(1, "straight", {"--steps=24"});
  runs.done(4, "parts", {"--steps=8"});
  runs.done(2, "parts", {"--steps=16", "--resume"});
  runs.done(1, "parts", {"--steps=24", "--resume"});
  CHECK(runs.checkpoint("parts", 24) == runs.checkpoint("straight", 24));
}

TEST_CASE("processes: stages of a loop leave the same checkpoint on any number of them, and go on with another") {
  if (!launches()) return;
  const MeshRuns runs(kLayersModel);
  runs.done(1, "one", {"--steps=12", "--val-fraction=0.2", "--eval-every=6"});
  for (const int processes : {2, 4, 8}) {
    CAPTURE(processes);
    const std::string name = fmt::format("of{}", processes);
    runs.done(processes, name, {"--steps=12", "--val-fraction=0.2", "--eval-every=6"});
    CHECK(runs.checkpoint(name, 12) == runs.checkpoint("one", 12));
    CHECK(runs.losses(name) == runs.losses("one"));
  }
  runs.done(4, "parts", {"--steps=4"});
  runs.done(8, "parts", {"--steps=8", "--resume"});
  runs.done(1, "parts", {"--steps=12", "--resume"});
  runs.done(1, "straight", {"--steps=12"});
  CHECK(runs.checkpoint("parts", 12) == runs.checkpoint("straight", 12));
  // Without stages the same microbatches, one after another.
  const std::string plain = "--mesh=data=2";
  runs.done(1, "plain", {"--steps=12", plain, "--shard=batch=data", "--accumulate=2", "-Dbatch=2"});
  const std::vector<double> staged = runs.losses("straight"), accumulated = runs.losses("plain");
  REQUIRE(staged.size() == accumulated.size());
  for (size_t i = 0; i < staged.size(); ++i) CHECK(staged[i] == doctest::Approx(accumulated[i]).epsilon(1e-5));
}

TEST_CASE("stages: what is not run yet is refused with its reason") {
  const MeshRuns runs(kLayersModel);
  const std::pair<std::vector<std::string>, const char*> refused[] = {
      {{"--target=cuda"}, "stages are not run on GPUs yet"},
      {{"--memory-limit=1GiB"}, "stages are not run under a limit of memory yet"},
      {{"--mesh=data=2,stage=4"}, "the mesh has another axis before theirs"}};
  for (const auto& [options, reason] : refused) {
    CAPTURE(reason);
    std::vector<std::string> all = options;
    all.push_back("--steps=1");
    const Ran ran = runs.run(1, "refused", all);
    CHECK(ran.status != 0);
    CHECK_MESSAGE(ran.errors.find(reason) != std::string::npos, ran.errors);
  }
}

TEST_CASE("processes: one that is killed ends all, and what it leaves is whole") {
  if (!launches()) return;
  const MeshRuns runs;
  runs.done(1, "straight", {"--steps=400", "--every=50"});
  for (const size_t victim : {0, 3}) {
    CAPTURE(victim);
    const std::string name = fmt::format("killed{}", victim);
    Surroundings surroundings;
    std::chrono::steady_clock::time_point killed;
    surroundings.ready = [&] { return runs.logged_steps(name) > 60; };
    surroundings.act = [&](pid_t launcher) {
      const std::vector<pid_t> ranks = einc_below(launcher);
      REQUIRE(ranks.size() == 4);
      kill(ranks[victim], SIGKILL);
      killed = std::chrono::steady_clock::now();
    };
    const Ran ran = runs.run(4, name, {"--steps=100000", "--every=50"}, surroundings);
    CHECK(ran.status != 0);
    CHECK(std::chrono::steady_clock::now() - killed < std::chrono::seconds(10));
    for (const fs::directory_entry& entry : fs::directory_iterator(runs.folder().at(name))) {
      const std::string step = entry.path().filename().string();
      if (step.rfind("step-", 0) == 0 && std::atoll(step.c_str() + 5) > 350) fs::remove_all(entry.path());
    }
    runs.done(1, name, {"--steps=400", "--every=50", "--resume"});
    CHECK(runs.checkpoint(name, 400) == runs.checkpoint("straight", 400));
  }
}

TEST_CASE("processes: one that stands still is named, and ends all") {
  if (!launches()) return;
  const MeshRuns runs;
  for (const size_t victim : {0, 2}) {
    CAPTURE(victim);
    const std::string name = fmt::format("stopped{}", victim);
    std::string rank;
    std::chrono::steady_clock::time_point stopped;
    Surroundings surroundings;
    surroundings.ready = [&] { return runs.logged_steps(name) > 5; };
    surroundings.act = [&](pid_t launcher) {
      const std::vector<pid_t> ranks = einc_below(launcher);
      REQUIRE(ranks.size() == 4);
      rank = variable_of(ranks[victim], "OMPI_COMM_WORLD_RANK");
      kill(ranks[victim], SIGSTOP);
      stopped = std::chrono::steady_clock::now();
    };
    const Ran ran = runs.run(4, name, {"--steps=100000", "--timeout=1.5"}, surroundings);
    CAPTURE(ran.errors);
    CHECK(ran.status == 4);
    CHECK(ran.errors.find("rank " + rank + " has not reached ") != std::string::npos);
    CHECK(ran.errors.find(" in time (--timeout)") != std::string::npos);
    const auto after = std::chrono::steady_clock::now() - stopped;
    CHECK(after > std::chrono::milliseconds(1500));
    CHECK(after < std::chrono::seconds(12));
  }
}

TEST_CASE("processes: SIGUSR1 ends a run after a step that all have done") {
  if (!launches()) return;
  const MeshRuns runs;
  Surroundings surroundings;
  surroundings.ready = [&] { return runs.logged_steps("stopped") > 5; };
  surroundings.act = [&](pid_t launcher) {
    for (const pid_t rank : einc_below(launcher)) kill(rank, SIGUSR1);
  };
  const Ran ran = runs.run(4, "stopped", {"--steps=100000"}, surroundings);
  CHECK(ran.status == 130);
  const std::string line = first_line_with(ran.errors, "einc: interrupted after step ");
  REQUIRE_MESSAGE(!line.empty(), ran.errors);
  const auto step = static_cast<uint64_t>(std::atoll(line.c_str() + std::string_view("einc: interrupted after step ").size()));
  runs.done(1, "straight", {"--steps=" + std::to_string(step)});
  CHECK(runs.checkpoint("stopped", step) == runs.checkpoint("straight", step));
}

TEST_CASE("processes: what fails ends all of them with one message and its status") {
  if (!launches()) return;
  const MeshRuns runs;
  struct Row {
    int processes;
    std::vector<std::string> options;
    int status;
    const char* message;
  };
  const Row rows[] = {
      {3, {"--steps=2"}, 3, "3 processes do not divide the 8 devices of the mesh"},
      {2, {"--steps=2", "--data=tokens=" + runs.folder().at("none.bin")}, 4, "none.bin: cannot read"},
      {2, {"--steps=2", "--weights=" + runs.folder().at("none.safetensors")}, 4, "none.safetensors"},
      {4, {"--steps=60", "--lr=1e30"}, 5, "of step "},
      {2, {"--steps=2", "--target=reference"}, 4, "--target=reference does not carry out a mesh among several processes"},
  };
  int number = 0;
  for (const Row& row : rows) {
    const Ran ran = runs.run(row.processes, fmt::format("failed{}", number++), row.options);
    CAPTURE(ran.errors);
    CHECK(ran.status == row.status);
    if (*row.message != '\0') CHECK(count_of(ran.errors, row.message) == 1);
  }
}

TEST_CASE("processes: a position outside its table is told as that of the whole program's data") {
  const MeshRuns runs;
  runs.folder().tokens("wrong.bin", 1500, 19);  // of 16 that the table has
  const auto told = [&](int processes, std::vector<std::string> options) {
    options.insert(options.end(), {"--steps=20", "--data=tokens=" + runs.folder().at("wrong.bin")});
    const Ran ran = runs.run(processes, fmt::format("wrong{}{}", processes, options.size()), options);
    CHECK(ran.status == 3);
    return first_line_with(ran.errors, "index out of range");
  };
  const std::string whole = told(1, {"--mesh=data=1", "--shard=batch=data"});
  CHECK(whole.find("'tokens' at [") != std::string::npos);
  CHECK(whole.find("wrong.bin") != std::string::npos);
  CHECK(told(1, {}) == whole);
  CHECK(told(1, {"--threads=1", "--mesh=data=4", "--shard=batch=data"}) == whole);
  if (launches()) CHECK(told(4, {}) == whole);
}

TEST_CASE("processes: without the plug-in it is named") {
  setenv("EINC_MESH_PLUGIN", "/nowhere/libmesh.so", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  const MeshRuns runs;
  const Ran ran = runs.run(1, "none", {"--steps=1"});
  for (const char* name : {"EINC_MESH_PLUGIN", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}) unsetenv(name);
  CHECK(ran.status == 4);
  CHECK(ran.errors.find("no plug-in for processes in '/nowhere/libmesh.so'") != std::string::npos);
}

// ---- GPUs: NCCL between processes that a shell starts as torchrun does, but ends none for another

namespace {

class NcclRuns : public MeshRuns {
 public:
  NcclRuns() {
    share_kernel_cache();
    setenv("EINC_EMULATED_NCCL", folder().at("nccl").c_str(), 1);
    setenv("EINC_EMULATED_DEVICES", "8", 1);
  }
  Ran run(int processes, const std::string& name, std::vector<std::string> more, Surroundings surroundings = {}) {
    more.emplace_back("--target=cuda");
    fs::remove_all(folder().at("nccl"));
    surroundings.launcher = {"timeout", "-k", "5", "100", "sh", "-c", kTorchrun, std::to_string(processes)};
    return MeshRuns::run(processes, name, more, surroundings);
  }
  void done(int processes, const std::string& name, const std::vector<std::string>& more) {
    const Ran ran = run(processes, name, more);
    CHECK_MESSAGE(ran.status == 0, ran.errors);
  }

 private:
  static constexpr const char* kTorchrun =
      "i=0; while [ $i -lt $0 ]; do RANK=$i LOCAL_RANK=$i WORLD_SIZE=$0 LOCAL_WORLD_SIZE=$0 MASTER_ADDR=localhost MASTER_PORT=29500 "
      "\"$@\" & p=\"$p $!\"; i=$((i+1)); done; s=0; for q in $p; do wait $q || s=$?; done; exit $s";
};

}  // namespace

TEST_CASE("processes with a GPU each: any number of them leaves the same checkpoint, and one speaks") {
  NcclRuns runs;
  for (const std::vector<std::string>& row : {std::vector<std::string>{"--steps=8"},
                                              {"--steps=4", "--accumulate=2", "--precision=bf16",
                                               "--shard=batch=data; heads,vocab=model; params=data", "--mesh=data=4,model=2"}}) {
    runs.MeshRuns::done(1, "one" + row[0], [&] {
      std::vector<std::string> options = row;
      options.emplace_back("--target=cuda");
      return options;
    }());
    const auto steps = static_cast<uint64_t>(std::atoi(row[0].c_str() + 8));
    for (const int processes : {2, 4}) {
      CAPTURE(processes);
      const std::string name = fmt::format("of{}{}", processes, row[0]);
      const Ran ran = runs.run(processes, name, row);
      CHECK_MESSAGE(ran.status == 0, ran.errors);
      CHECK(runs.checkpoint(name, steps) == runs.checkpoint("one" + row[0], steps));
      CHECK(count_of(ran.output, "trained ") == 1);
    }
    if (!launches()) continue;
    fs::remove_all(runs.folder().at("nccl"));
    std::vector<std::string> options = row;
    options.emplace_back("--target=cuda");
    runs.MeshRuns::done(2, "mpi" + row[0], options);  // MPI hands out NCCL's id
    CHECK(runs.checkpoint("mpi" + row[0], steps) == runs.checkpoint("one" + row[0], steps));
  }
}

TEST_CASE("processes with a GPU each: one that is killed ends all, and the run goes on with another number") {
  NcclRuns runs;
  runs.done(2, "straight", {"--steps=40", "--every=10"});
  Surroundings surroundings;
  std::chrono::steady_clock::time_point killed;
  surroundings.ready = [&] { return runs.logged_steps("killed") > 24; };
  surroundings.act = [&](pid_t launcher) {
    const std::vector<pid_t> ranks = einc_below(launcher);
    REQUIRE(ranks.size() == 4);
    kill(ranks[3], SIGKILL);
    killed = std::chrono::steady_clock::now();
  };
  const Ran ran = runs.run(4, "killed", {"--steps=100000", "--every=10"}, surroundings);
  CHECK(ran.status != 0);  // the shell's, of the last that failed: 4, or that of the killed one
  // Of a collective or of what the processes tell each other behind a step, wherever it was.
  CHECK(ran.errors.find(": remote process exited or there was a network error") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - killed < std::chrono::seconds(10));
  for (const fs::directory_entry& entry : fs::directory_iterator(runs.folder().at("killed"))) {
    const std::string step = entry.path().filename().string();
    if (step.rfind("step-", 0) == 0 && std::atoll(step.c_str() + 5) > 30) fs::remove_all(entry.path());
  }
  runs.done(2, "killed", {"--steps=40", "--every=10", "--resume"});
  CHECK(runs.checkpoint("killed", 40) == runs.checkpoint("straight", 40));
}

TEST_CASE("processes with a GPU each: one that stands still ends all, where the others wait for it") {
  NcclRuns runs;
  Surroundings surroundings;
  surroundings.ready = [&] { return runs.logged_steps("stopped") > 5; };
  surroundings.act = [&](pid_t launcher) {
    const std::vector<pid_t> ranks = einc_below(launcher);
    REQUIRE(ranks.size() == 4);
    kill(ranks[2], SIGSTOP);
    std::thread([stopped = ranks[2]] {
      std::this_thread::sleep_for(std::chrono::seconds(8));
      kill(stopped, SIGKILL);
    }).detach();
  };
  const Ran ran = runs.run(4, "stopped", {"--steps=100000", "--timeout=1.5"}, surroundings);
  CAPTURE(ran.errors);
  const auto tells = [&](const char* text) { return ran.errors.find(text) != std::string::npos; };
  CHECK((tells("a rank has not reached ") || tells("a rank has not come to it ")));
  CHECK(ran.errors.find(" in time (--timeout)") != std::string::npos);
}

}  // namespace einc::test
