// SPDX-License-Identifier: Apache-2.0
// A folder of its own for each test, with token files and logs in it.
#pragma once
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/run_einc.h"

namespace einc::test {

// Lets all tests find the kernels that one has compiled for the emulated GPU.
inline bool share_kernel_cache() {
  setenv("XDG_CACHE_HOME", (std::filesystem::path(EINC_EMULATED_GPU) / "cache").c_str(), 1);
  return true;
}

// How often a run is to be killed: as scripts/test --slow says, or the suite.
inline int kills_asked(int by_default) {
  const char* value = std::getenv("EINC_KILLS");
  return value != nullptr ? std::atoi(value) : by_default;
}

class TrainFolder {
 public:
  TrainFolder() : path_(std::filesystem::temp_directory_path() / fmt::format("einc_train_{}_{}", getpid(), count_++)) {
    std::filesystem::create_directories(path_);
  }
  ~TrainFolder() { std::filesystem::remove_all(path_); }
  TrainFolder(const TrainFolder&) = delete;
  TrainFolder& operator=(const TrainFolder&) = delete;

  std::string at(const std::string& name) const { return (path_ / name).string(); }
  std::string text(const std::string& name, std::string_view content) const {
    std::ofstream(at(name), std::ios::binary) << content;
    return at(name);
  }
  // A walk through `vocabulary` numbers that a model can learn: mostly one more than the last.
  std::string tokens(const std::string& name, size_t count, uint16_t vocabulary) const {
    std::string bytes;
    uint32_t random = 1, token = 0;
    for (size_t i = 0; i < count; ++i) {
      random = random * 1664525 + 1013904223;
      token = (token + (random >> 30 == 0 ? 2 : 1)) % vocabulary;
      bytes += static_cast<char>(token & 255);
      bytes += static_cast<char>(token >> 8);
    }
    return text(name, bytes);
  }
  std::string content(const std::string& name) const {
    std::ifstream in(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<nlohmann::json> log(const std::string& name) const {
    std::vector<nlohmann::json> lines;
    std::ifstream in(at(name));
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  // Steps that a run has written to its log so far, the last line of which may be in the making.
  uint64_t logged_steps(const std::string& name) const {
    std::ifstream in(at(name));
    uint64_t steps = 0;
    for (std::string line; std::getline(in, line);) steps += line.find(R"("kind":"step")") != std::string::npos;
    return steps;
  }
  // The weights and states of a checkpoint of a run.
  std::string saved(const std::string& run, uint64_t step) const {
    const std::string place = fmt::format("{}/step-{:08}/", run, step);
    return content(place + "weights.safetensors") + content(place + "state.safetensors");
  }
  // One field of all lines of a kind.
  std::vector<double> logged(const std::string& name, const std::string& kind, const std::string& field) const {
    std::vector<double> values;
    for (const nlohmann::json& line : log(name))
      if (line.at("kind") == kind) values.push_back(line.at(field).get<double>());
    return values;
  }

 private:
  static inline int count_ = 0;
  std::filesystem::path path_;
};

// A small model of the next token, with dropout and clipping.
inline constexpr std::string_view kTokenModel = R"(dim batch = 4, seq = 8, vocab = 16, width = 24
input tokens:  i32[batch seq]
input targets: i32[batch seq]
param table: [vocab width] ~ normal(std = 0.1)
param out:   [width vocab] ~ normal(std = 0.1)
x = dropout(table[vocab = tokens], 0.2)
logits = einsum(tanh(x), out, "... width, width vocab -> ... vocab")
loss = mean(cross_entropy(logits, targets, vocab))
minimize loss using adamw(lr = cosine(0.02, warmup = 5, total = 40, floor = 0.002), clip_norm = 1.0)
)";

// A program with tokens to train and to evaluate on.
class Trained {
 public:
  explicit Trained(std::string_view program = kTokenModel) : program_(folder_.text("m.ein", program)) {
    folder_.tokens("train.bin", 3000, 16);
    folder_.tokens("val.bin", 400, 16);
  }
  // Weights go to `name`.safetensors, the log to `name`.jsonl.
  Ran run(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"train", program_, "--data", "tokens=" + folder_.at("train.bin"), "--log-every=1"};
    arguments.insert(arguments.end(), {"--log=" + folder_.at(name + ".jsonl"), "--save=" + folder_.at(name + ".safetensors")});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_einc(arguments);
  }
  std::vector<double> losses(const std::string& name, const std::vector<std::string>& more) const {
    const Ran ran = run(name, more);
    INFO(ran.errors);
    CHECK(ran.status == 0);
    return folder_.logged(name + ".jsonl", "step", "loss");
  }
  std::string weights(const std::string& name) const { return folder_.content(name + ".safetensors"); }
  std::string validation() const { return "--val=tokens=" + folder_.at("val.bin"); }
  const TrainFolder& folder() const { return folder_; }

 private:
  TrainFolder folder_;
  std::string program_;
};

}  // namespace einc::test
