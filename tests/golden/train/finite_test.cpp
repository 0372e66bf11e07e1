// SPDX-License-Identifier: Apache-2.0
// No step stores a NaN, or an infinity where the old element was finite: `einc train` and `einc run` end with status 5, and what was saved
// before is the last finite one.
#include <cmath>
#include <cstring>
#include <filesystem>

#include "tests/golden/train/folder.h"

namespace einc::test {
namespace {

// The same on every target.
const bool shared = share_kernel_cache();
constexpr const char* kTargets[] = {"--target=cpu", "--target=reference", "--target=cuda"};

void append(std::string& bytes, const void* value, size_t count) { bytes.append(static_cast<const char*>(value), count); }

// An npy file of f32.
std::string npy(const std::vector<float>& values, const std::string& shape) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  const auto length = static_cast<uint16_t>(header.size());
  append(bytes, &length, sizeof length);
  bytes += header;
  append(bytes, values.data(), values.size() * sizeof(float));
  return bytes;
}

// Rows of three numbers to train on, all the same but for those given.
class Rows {
 public:
  explicit Rows(const std::string& program, std::vector<float> rows = std::vector<float>(30, 1))
      : program_(folder_.text("m.ein", program)) {
    folder_.text("x.npy", npy(rows, std::to_string(rows.size() / 3) + ", 3"));
  }
  Ran train(const char* target, std::vector<std::string> more) const {
    std::vector<std::string> arguments{"train",          program_,        "--data", "x=" + folder_.at("x.npy"),
                                       "--order=epochs", "--log-every=1", target,   "--log=" + folder_.at("run.jsonl")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::filesystem::remove(folder_.at("run.jsonl"));
    return run_einc(arguments);
  }
  size_t steps() const { return folder_.logged("run.jsonl", "step", "loss").size(); }
  const TrainFolder& folder() const { return folder_; }

 private:
  TrainFolder folder_;
  std::string program_;
};

std::vector<float> with_a_zero() {
  std::vector<float> data(30, 1);
  data[20] = 0;  // of the seventh row
  return data;
}

std::string model(const std::string& body) { return "dim n = 1\ninput x: [n d=3]\n" + body; }

}  // namespace

TEST_CASE("the checkpoint before the step that would store NaNs is kept, and goes on") {
  // Where x is 0 the slope of the root is not finite.
  const Rows rows(model("param w: [d] ~ ones\nloss = mean(sqrt(abs(w * x)))\nminimize loss using sgd(lr = 2)\n"), with_a_zero());
  for (const char* target : kTargets) {
    CAPTURE(target);
    const std::string folder = "--checkpoint=" + rows.folder().at(std::string("run") + target), save = rows.folder().at("w.safetensors");
    const Ran ran = rows.train(target, {"--steps=20", folder, "--every=1", "--keep=1", "--save=" + save});
    INFO(ran.errors);
    REQUIRE(ran.status == 5);
    CHECK(ran.errors.find("a gradient is not finite: '") != std::string::npos);
    CHECK(ran.errors.find("m.ein:4:") != std::string::npos);
    CHECK(!std::filesystem::exists(save));
    const size_t good = rows.steps();
    CHECK(good > 0);
    // It has weights to go on with.
    const Ran again = rows.train(target, {"--steps=" + std::to_string(good), folder, "--resume", "--save=" + save});
    CHECK(again.status == 0);
    const std::string weights = rows.folder().content("w.safetensors");
    REQUIRE(weights.size() > 12);
    float w[3];
    std::memcpy(w, weights.data() + weights.size() - sizeof w, sizeof w);
    for (const float x : w) CHECK(std::isfinite(x));
    std::filesystem::remove(save);
    CHECK(rows.train(target, {"--steps=20", folder, "--resume"}).status == 5);
  }
}

TEST_CASE("an infinity in the data stops the run where it comes") {
  std::vector<float> data(30, 1);
  data[13] = INFINITY;  // of the fifth row
  const Rows rows(model("param w: [d] ~ ones\nloss = mean(tanh(w * x)) + 0 * sum(w)\nminimize loss using adam(lr = 0.01)\n"), data);
  for (const char* target : kTargets) {
    CAPTURE(target);
    const Ran ran = rows.train(target, {"--steps=10", "--seed=1"});
    INFO(ran.errors);
    CHECK(ran.status == 5);
    CHECK(rows.steps() < 10);
  }
}

TEST_CASE("an update that overflows from finite gradients is found before it is stored") {
  struct Case {
    const char *name, *optimizer;
    size_t steps;  // that are done
  };
  // The loss is always 0, and each gradient 3e38.
  constexpr Case kCases[] = {{"sgd", "sgd(lr = 2)", 0},           {"momentum", "momentum(lr = 1e-30, momentum = 0.9)", 1},
                             {"adagrad", "adagrad(lr = 0.1)", 0}, {"rmsprop", "rmsprop(lr = 0.1)", 0},
                             {"adam", "adam(lr = 0.1)", 0},       {"adamw", "adamw(lr = 0.1)", 0}};
  for (const Case& c : kCases) {
    const Rows rows(model(std::string("param w: [d] ~ ones\nloss = sum(3e38 * x * (w - stop_gradient(w)))\nminimize loss using ") +
                          c.optimizer + "\n"));
    for (const char* target : kTargets) {
      CAPTURE(c.name);
      CAPTURE(target);
      const Ran ran = rows.train(target, {"--steps=4"});
      INFO(ran.errors);
      CHECK(ran.status == 5);
      CHECK(rows.steps() == c.steps);
      CHECK(ran.errors.find("a param or state would take a value that is not finite") != std::string::npos);
      CHECK(ran.errors.find(" is the first tensor that ") != std::string::npos);
    }
  }
}

TEST_CASE("a state that begins infinite is updated, and a NaN in one of the user's is not stored") {
  const Rows running(
      model("state largest: [d] ~ constant(-inf)\nlargest <- max(largest, sum(x, n))\nparam w: [d] ~ ones\n"
            "loss = mean((w * x)^2)\nminimize loss using sgd(lr = 0.1)\n"));
  const Rows root(
      model("state s: [d] ~ constant(2)\ns <- sqrt(s - 1)\nparam w: [d] ~ ones\nloss = mean((w * x)^2)\n"
            "minimize loss using sgd(lr = 0.1)\n"));
  for (const char* target : kTargets) {
    CAPTURE(target);
    const Ran ran = running.train(target, {"--steps=5"});
    INFO(ran.errors);
    CHECK(ran.status == 0);
    const Ran refused = root.train(target, {"--steps=5"});  // 2, 1, 0, nan
    INFO(refused.errors);
    CHECK(refused.status == 5);
    CHECK(root.steps() == 2);
    CHECK(refused.errors.find("m.ein:4:") != std::string::npos);
  }
}

TEST_CASE("micro-batches, clipping and user-written optimizers are looked at too") {
  const Rows accumulated(model("param w: [d] ~ ones\nloss = mean(sqrt(abs(w * x)))\nminimize loss using sgd(lr = 2)\n"), with_a_zero());
  const Rows own(
      model("fn halving(p: [...], g: [...], t, lr = 1) { return p / (p - p) - lr * g }\nparam w: [d] ~ ones\n"
            "loss = mean((w * x)^2)\nminimize loss using halving(lr = 0.1)\n"));
  const Rows clipped(model("param w: [d] ~ ones\nloss = mean(sqrt(abs(w * x)))\nminimize loss using adamw(lr = 0.5, clip_norm = 1)\n"),
                     with_a_zero());
  for (const char* target : kTargets) {
    CAPTURE(target);
    const Ran sums = accumulated.train(target, {"--steps=20", "--accumulate=2"});
    INFO(sums.errors);
    CHECK(sums.status == 5);
    CHECK(sums.errors.find("a gradient is not finite") != std::string::npos);
    const Ran ran = own.train(target, {"--steps=3"});
    INFO(ran.errors);
    CHECK(ran.status == 5);
    CHECK(own.steps() == 0);
    const Ran norm = clipped.train(target, {"--steps=20"});
    INFO(norm.errors);
    CHECK(norm.status == 5);
    CHECK(norm.errors.find("a gradient is not finite") != std::string::npos);
  }
}

// What is looked at in parts by devices that agree before they store.
TEST_CASE("over a mesh a step ends where it ends without one, and with the same words") {
  const std::string root = "param w: [d] ~ ones\nloss = mean(sqrt(abs(w * x)))\nminimize loss using ";
  const std::string square = "param w: [d] ~ ones\nloss = mean((w * x)^2)\nminimize loss using sgd(lr = 0.1)\n";
  struct Case {
    std::string program;
    std::vector<float> rows;
    std::vector<std::string> more;
  };
  const std::vector<float> ones(30, 1);
  const Case cases[] = {{root + "sgd(lr = 2)\n", with_a_zero(), {}},
                        {root + "sgd(lr = 2)\n", with_a_zero(), {"--accumulate=2"}},
                        {root + "adamw(lr = 0.5, clip_norm = 1)\n", with_a_zero(), {}},
                        {"state s: [d] ~ constant(2)\ns <- sqrt(s - 1)\n" + square, ones, {}},
                        {"state largest: [d] ~ constant(-inf)\nlargest <- max(largest, sum(x, n))\n" + square, ones, {}}};
  for (const Case& c : cases) {
    const Rows rows(model(c.program), c.rows);
    CAPTURE(c.program);
    for (const char* target : {"--target=cpu", "--target=cuda"}) {
      CAPTURE(target);
      const auto train = [&](std::vector<std::string> mesh) {
        mesh.insert(mesh.end(), {"--steps=4", "-Dn=2"});
        mesh.insert(mesh.end(), c.more.begin(), c.more.end());
        return rows.train(target, mesh);
      };
      const Ran whole = train({});
      CHECK(whole.status == (c.program.find("largest") == std::string::npos ? 5 : 0));
      const size_t steps = rows.steps();
      for (const char* shard : {"--shard=n=data", "--shard=n=data; states=data"}) {
        CAPTURE(shard);
        const Ran ran = train({"--mesh=data=2", shard});
        CHECK(ran.status == whole.status);
        CHECK(ran.errors == whole.errors);
        CHECK(rows.steps() == steps);
      }
    }
  }
}

TEST_CASE("the reference runs the program as written") {
  // What the softmax of a row of -inf is made of is told of by the other targets.
  const Rows rows(model("param w: [d] ~ zeros\nloss = mean(softmax(log(w * x), d))\nminimize loss using adamw(lr = 0.5)\n"));
  const Ran written = rows.train("--target=reference", {"--steps=2"}), compiled = rows.train("--target=cpu", {"--steps=2"});
  INFO(written.errors);
  INFO(compiled.errors);
  CHECK(written.status == 5);
  CHECK(written.errors.find("'softmax' (") != std::string::npos);
  CHECK(compiled.status == 5);
  CHECK(compiled.errors.find("'softmax' (") == std::string::npos);
}

TEST_CASE("einc run refuses what a state would take") {
  const TrainFolder folder;
  const std::string bad = folder.text("s.ein", "dim n = 3\nstate s: [n] ~ zeros\ns <- s / s\noutput y = s + 1\n"),
                    good = folder.text("g.ein", "dim n = 3\nstate s: [n] ~ constant(-inf)\ns <- max(s, -1)\noutput y = s\n"),
                    table = folder.text("t.ein", "dim n = 3\ninput x: [d=2]\nstate s: [n d] ~ zeros\ns[n = 1] <- x\noutput y = sum(x)\n");
  folder.text("nan.npy", npy({1, NAN}, "2,"));
  folder.text("one.npy", npy({1, 1}, "2,"));
  for (const char* target : kTargets) {
    CAPTURE(target);
    const Ran refused = run_einc({"run", bad, target});
    INFO(refused.errors);
    CHECK(refused.status == 5);
    CHECK(refused.output.empty());
    CHECK(refused.errors.find("s.ein:3:") != std::string::npos);
    CHECK(run_einc({"run", good, target}).status == 0);
    CHECK(run_einc({"run", table, "--input=x=" + folder.at("one.npy"), target}).status == 0);
    CHECK(run_einc({"run", table, "--input=x=" + folder.at("nan.npy"), target}).status == 5);
  }
}

}  // namespace einc::test
