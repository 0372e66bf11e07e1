// SPDX-License-Identifier: Apache-2.0
// The commands that the examples' first comments give, run as they stand but for their lengths and where their files lie.
#include <fmt/ranges.h>

#include <array>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "runtime/data/array_file.h"
#include "tests/golden/train/folder.h"
#include "tests/support/sample.h"

namespace einc::test {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  bool inside = false, quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    const bool ends = !quoted && c == ' ';
    if (!ends && !inside) words.emplace_back();
    inside = !ends;
    if (!ends && c != '"') words.back() += c;
  }
  return words;
}

// "#   einc train ...", and the lines that go on with it: "#              --save ...".
std::vector<std::vector<std::string>> commands_of(const std::string& example) {
  std::ifstream in(example);
  std::vector<std::vector<std::string>> commands;
  bool continues = false;
  for (std::string line; std::getline(in, line) && line.rfind('#', 0) == 0;) {
    const size_t text = line.find_first_not_of("# ");
    const bool begins = line.rfind("#   einc ", 0) == 0;
    continues = begins || (continues && text != std::string::npos && line.compare(text, 2, "--") == 0);
    if (!continues) continue;
    if (begins) commands.emplace_back();
    for (std::string& word : words_of(line.substr(text))) commands.back().push_back(std::move(word));
  }
  return commands;
}

// What an example's commands say, one after the other, in a folder of their own.
class Example {
 public:
  explicit Example(const std::string& name) : path_("examples/" + name + ".ein"), commands_(commands_of(path_)) {}

  const TrainFolder& folder() const { return folder_; }
  size_t commands() const { return commands_.size(); }
  // `changes`: options with another value than the comment's; "-D" stands for one more dim.
  Ran run(size_t index, const std::map<std::string, std::string>& changes = {}) const {
    std::vector<std::string> arguments;
    for (const std::string& word : std::span(commands_.at(index)).subspan(1)) {
      const auto change = arguments.empty() ? changes.end() : changes.find(arguments.back());
      arguments.push_back(change == changes.end() || change->first == "-D" ? placed(word) : change->second);
    }
    if (const auto dims = changes.find("-D"); dims != changes.end()) {
      for (const std::string& dim : words_of(dims->second)) arguments.insert(arguments.end(), {"-D", dim});
    }
    if (arguments.front() == "train") arguments.push_back("--threads=1");  // threads that wait use up the time a test may take
    const Ran ran = run_einc(arguments);
    CAPTURE(fmt::format("{}", fmt::join(arguments, " ")));
    REQUIRE_MESSAGE(ran.status == 0, ran.errors);
    return ran;
  }

 private:
  // A file that is no example lies in the folder.
  std::string placed(const std::string& word) const {
    static const std::set<std::string> kEndings = {".npy", ".bin", ".txt", ".json", ".jsonl", ".safetensors", ".svg"};
    const size_t name = word.find('=') + 1;
    if (!kEndings.contains(std::filesystem::path(word).extension().string())) return word;
    return word.substr(0, name) + folder_.at(word.substr(name));
  }

  std::string path_;
  std::vector<std::vector<std::string>> commands_;
  TrainFolder folder_;
};

// "name: f32[...] 1 2 3" of a run.
std::vector<double> values(const Ran& ran, const std::string& name) {
  std::istringstream lines(ran.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name + ": ", 0) != 0) continue;
    std::istringstream numbers(line.substr(line.find("] ") + 2));
    std::vector<double> all;
    for (double value = 0; numbers >> value;) all.push_back(value);
    return all;
  }
  FAIL("no value of ", name, " in ", ran.output);
  return {};
}

// English prose of at most 65 different characters.
std::string prose() {
  std::ifstream in("ARCHITECTURE.md", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  for (char& c : text)
    if (std::isalpha(static_cast<unsigned char>(c)) == 0 && std::string_view(" \n.,:;'-!").find(c) == std::string_view::npos) c = ' ';
  return text;
}

double last_loss(const Example& example, const std::string& kind, const std::string& field) {
  return example.folder().logged("run.jsonl", kind, field).back();
}

}  // namespace

TEST_CASE("examples: a deep linear model recovers the weights of its data") {
  const Example example("deep_linear");
  REQUIRE(example.commands() == 3);
  example.run(0);
  example.run(1);
  const std::vector<double> shown = values(example.run(2), "y");
  REQUIRE(shown.size() == 16);
  for (size_t i = 0; i < shown.size(); ++i) CHECK(std::abs(shown[i] - static_cast<double>(i)) < 1e-5);

  // The product itself.
  const ArrayFile weights(example.folder().at("weights.safetensors"));
  const auto at = [&](const std::string& name) {
    const HostArray array = weights.read(name);
    const auto* values = reinterpret_cast<const float*>(array.bytes.data());
    return std::vector<double>(values, values + array.count());
  };
  std::vector<double> product = at("head");
  for (const char* layer : {"layer.1.w", "layer.0.w"}) {
    const std::vector<double> w = at(layer);
    std::vector<double> next(16);
    for (size_t i = 0; i < 256; ++i) next[i / 16] += w[i] * product[i % 16];
    product = next;
  }
  for (size_t i = 0; i < 16; ++i) CHECK(std::abs(product[i] - static_cast<double>(i)) < 1e-6);
}

TEST_CASE("examples: the image classifier learns to tell digits") {
  const Example example("cnn");
  REQUIRE(example.commands() == 4);
  example.run(0);
  example.run(1);
  // A quarter of the steps; at a tenth the accuracy was that of a guess.
  example.run(2, {{"--steps", "300"}, {"--lr", "cosine(0.05, total = 300)"}});
  CHECK(values(example.run(3), "accuracy").front() > 0.9);
}

TEST_CASE("examples: programs that draw their own data learn") {
  struct Row {
    const char *name, *steps;
    double loss;  // below which the last interval lies; who knows nothing has 0.167, 0.7 and 0.69
  };
  for (const Row& row : sampled(std::array{Row{"lstm", "500", 0.05}, Row{"moe", "300", 0.3}, Row{"graph", "200", 0.6}}, 2)) {
    CAPTURE(row.name);
    const Example example(row.name);
    REQUIRE(example.commands() == 2);
    example.run(0, {{"--steps", row.steps}});
    example.run(1);
    CHECK(last_loss(example, "step", "loss") < row.loss);
  }
}

TEST_CASE("examples: deeper classifiers learn to tell digits") {
  for (const auto& [name, steps, accuracy] : sampled(std::array{std::tuple{"resnet", "120", 0.3}, std::tuple{"vit", "200", 0.3}}, 2)) {
    CAPTURE(name);
    const Example example(name);
    REQUIRE(example.commands() == 4);
    example.run(0, {{"-D", "images=4096"}});
    example.run(1);
    example.run(2, {{"--steps", steps}});
    CHECK(values(example.run(3), "accuracy").front() > accuracy);
  }
}

TEST_CASE("examples: a diffusion model draws what looks like its data") {
  const Example example("diffusion");
  REQUIRE(example.commands() == 3);
  example.run(0, {{"-D", "images=512"}});
  example.run(1, {{"--steps", "60"}, {"-D", "batch=8"}});
  CHECK(last_loss(example, "step", "loss") < 0.6);  // 1 without a guess
  example.run(2, {{"-D", "batch=2 steps=4"}});
}

TEST_CASE("examples: the language models learn characters") {
  for (const char* name : sampled(std::array{"shakespeare_char", "shakespeare_llama"}, 2)) {
    CAPTURE(name);
    const Example example(name);
    REQUIRE(example.commands() == 3);
    example.folder().text("input.txt", prose());
    example.run(0);
    const std::string sizes = "layers=2 head=16";
    example.run(1, {{"--steps", "200"}, {"--eval-every", "200"}, {"--eval-batches", "4"}, {"-D", sizes}});
    CHECK(example.folder().logged("run.jsonl", "evaluation", "validation_loss").front() == doctest::Approx(std::log(65.0)).epsilon(0.02));
    CHECK(last_loss(example, "evaluation", "validation_loss") < 3.0);
    if (name == std::string("shakespeare_char"))
      example.run(2);  // plots
    else
      example.run(2, {{"-D", sizes}});  // samples
  }
}

TEST_CASE("examples: the larger configuration learns with dropout") {
  const Example example("shakespeare_large");
  REQUIRE(example.commands() == 2);
  example.folder().text("input.txt", prose());
  example.run(0);
  example.run(1, {{"--steps", "120"},
                  {"--eval-every", "60"},
                  {"--every", "60"},
                  {"--eval-batches", "4"},
                  {"--checkpoint", example.folder().at("run")},
                  {"-D", "layers=2 heads=2 head=32 seq=64 batch=8"}});
  CHECK(example.folder().logged("run.jsonl", "evaluation", "validation_loss").front() == doctest::Approx(std::log(65.0)).epsilon(0.02));
  CHECK(last_loss(example, "evaluation", "validation_loss") < 3.1);
}

}  // namespace einc::test
