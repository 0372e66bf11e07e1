// SPDX-License-Identifier: Apache-2.0
// `einc sample` through the binary.
#include <doctest/doctest.h>
#include <einc/einc.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/data/array_file.h"
#include "tests/support/run_einc.h"

namespace einc::test {
namespace {

const std::vector<std::string> kSizes = {"-D", "layers=2", "-D", "heads=2", "-D", "head=8", "-D", "vocab=256"};

class Weights {
 public:
  Weights() : path_((std::filesystem::temp_directory_path() / fmt::format("einc_weights_{}.safetensors", getpid())).string()) {
    CompileOptions options;
    options.dims = {{"batch", 1}, {"vocab", 256}, {"layers", 2}, {"heads", 2}, {"head", 8}, {"seq", 32}};
    options.purpose = Purpose::inference;
    options.target = Target::reference;
    Session session(compile_file("examples/nanogpt.ein", options));
    session.init(1);
    session.save(path_);
  }
  ~Weights() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

  // The same under the names of other software, the output's matrices transposed.
  class Renamed {
   public:
    explicit Renamed(const Weights& weights) : path_(weights.path() + ".npz"), names_(weights.path() + ".txt") {
      const ArrayFile file(weights.path());
      NamedArrays arrays;
      for (const std::string& name : file.names()) arrays.emplace_back("model." + name, file.read(name));
      for (auto& [name, array] : arrays) {
        if (!name.ends_with(".w_up")) continue;
        const auto rows = static_cast<size_t>(array.shape[0]), columns = static_cast<size_t>(array.shape[1]);
        const std::vector<std::byte> bytes = array.bytes;
        for (size_t at = 0; at < bytes.size(); ++at) array.bytes[((at / 4 % columns) * rows + at / 4 / columns) * 4 + at % 4] = bytes[at];
        std::swap(array.shape[0], array.shape[1]);
      }
      write_arrays(path_, ArrayFormat::npz, arrays);
      std::ofstream(names_) << "model.h.*.mlp.w_up -> h.*.mlp.w_up : hidden embed -> embed hidden\n"
                               "model.h.*.*.* -> h.*.*.*\nmodel.ln_f.scale -> ln_f.scale\nmodel.wte -> wte\nmodel.wpe -> wpe\n";
    }
    ~Renamed() { std::filesystem::remove(path_), std::filesystem::remove(names_); }
    const std::string& path() const { return path_; }
    const std::string& names() const { return names_; }

   private:
    std::string path_, names_;
  };

 private:
  std::string path_;
};

Ran sample(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "sample");
  arguments.insert(arguments.end(), kSizes.begin(), kSizes.end());
  return run_einc(arguments);
}

}  // namespace

TEST_CASE("sample: a model with a cache and one without say the same, by the seed") {
  const Weights weights;
  const std::vector<std::string> cached = {"examples/nanogpt_sample.ein", "-D", "context=32"},
                                 plain = {"examples/nanogpt.ein", "-D", "seq=32"};  // whose batch is 8: one text is drawn
  const auto text = [&](std::vector<std::string> model, const std::vector<std::string>& more) {
    model.insert(model.end(), {"--weights", weights.path(), "--prompt", "Now is", "-n", "60", "--quiet"});
    model.insert(model.end(), more.begin(), more.end());
    const Ran ran = sample(model);
    CHECK(ran.status == 0);
    CHECK(ran.errors == "");
    CHECK(ran.output.rfind("Now is", 0) == 0);
    CHECK(ran.output.size() == 6 + 60 + 1);
    return ran.output;
  };
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"--greedy"}, {"--seed", "4"}, {"--seed", "4", "--temperature", "0.5", "--top-k", "40", "--top-p", "0.9"}})
    CHECK(text(cached, how) == text(plain, how));
  CHECK(text(cached, {"--seed", "4"}) != text(cached, {"--seed", "5"}));
  CHECK(text(cached, {"--greedy"}) == text(cached, {"--greedy", "--target=cuda"}));
  CHECK(text(cached, {"--greedy"}) == text(cached, {"--temperature", "0", "--seed", "9", "--threads", "1"}));
}

TEST_CASE("sample: weights from elsewhere, by a file of names") {
  const Weights weights;
  const Weights::Renamed elsewhere(weights);
  const std::vector<std::string> model = {"examples/nanogpt_sample.ein", "-D", "context=32", "--greedy", "-n", "20", "--quiet"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = model;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return sample(arguments);
  };
  const Ran ours = with({"--weights", weights.path()});
  const Ran theirs = with({"--weights", elsewhere.path(), "--rename", elsewhere.names()});
  CHECK_MESSAGE(theirs.status == 0, theirs.errors);
  CHECK(theirs.output == ours.output);
  CHECK(with({"--weights", elsewhere.path()}).status == 3);
}

TEST_CASE("sample: what is wrong is told") {
  const Weights weights;
  const auto says = [&](std::vector<std::string> arguments, int status, const std::string& what) {
    const Ran ran = sample(std::move(arguments));
    CHECK(ran.status == status);
    CAPTURE(ran.errors);
    CHECK(ran.errors.find(what) != std::string::npos);
  };
  says({"examples/nanogpt_sample.ein", "--weights", "none.safetensors"}, 4, "none.safetensors");
  says({"examples/nanogpt_sample.ein", "--weights", weights.path()}, 3, "wpe");  // of another context
  says({"examples/nanogpt_sample.ein", "-D", "context=32", "--weights", weights.path(), "--kind", "gpt2"}, 2, "--vocab");
  says({"examples/nanogpt_sample.ein", "-D", "context=32", "--weights", weights.path(), "--top-p", "2"}, 2, "top-p");
  says({"examples/nanogpt.ein", "-D", "batch=2", "--weights", weights.path()}, 2, "-D batch=2, but one text is drawn at a time");
  CHECK(run_einc({"sample", "examples/mlp.ein", "--weights", weights.path()}).status == 3);
  CHECK(run_einc({"sample", "examples/deep_linear.ein", "--weights", weights.path()}).status == 1);
}

}  // namespace einc::test
